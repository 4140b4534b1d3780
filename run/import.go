package run

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/hf"
	"anneal/internal/fileio"
	"anneal/interop"
	"anneal/model"
	"anneal/precision"
	"anneal/safetensors"
	"anneal/tokenizer"
)

// ImportReport describes an import.
type ImportReport struct {
	Run         string `json:"run"`
	Parameters  int64  `json:"parameters"`
	DType       string `json:"dtype"`     // the format that the weights were stored in
	Precision   string `json:"precision"` // that generate and eval compute in
	WeightsHash string `json:"weights_hash"`
}

// ImportHF makes a run directory from a model in Hugging Face layout: its configuration, tokenizer and one
// checkpoint, ready to generate, evaluate, export, and start training from. It computes in the format of its weights.
// endOfText is the special token that ends a text; if it is "", the tokenizer's files decide, or else config.json if
// it has only one.
func ImportHF(src, runDirectory, endOfText string) (*ImportReport, error) {
	if err := CheckNewRun(runDirectory); err != nil {
		return nil, err
	}
	if !isFile(filepath.Join(src, "config.json")) {
		return nil, &dataset.Error{Err: fmt.Errorf("%s is not a Hugging Face model: it has no config.json", src)}
	}
	cfg, err := configOf(src)
	if err != nil {
		return nil, &dataset.Error{Err: fmt.Errorf("%s: %w", src, err)}
	}
	t, tok, err := importTokenizer(src, endOfText, cfg.Model.Vocab)
	if err != nil {
		return nil, err
	}
	from, err := importState(src, t)
	if err != nil {
		return nil, &dataset.Error{Err: err}
	}
	fp32, err := precision.Lookup("fp32")
	if err != nil {
		return nil, err
	}
	stored, err := interop.StoredAs(src)
	if err != nil {
		return nil, &dataset.Error{Err: err}
	}
	m, params, err := interop.Load(src, fp32, device.Host{})
	if err != nil {
		return nil, &dataset.Error{Err: err}
	}
	defer params.Close()
	cfg.Take("precision", precisionOf(stored), fmt.Sprintf("the import: its weights are %s", stored))
	dir := runDir(runDirectory)
	if err := dir.begin(); err != nil {
		return nil, err
	}
	files := newRunFiles(dir, cfg, tok, t)
	store, err := checkpoint.Open(dir.checkpoints(), checkpoint.Options{Synchronous: true, Origin: files.origin()})
	if err != nil {
		return nil, err
	}
	defer store.Close()
	weights := weightTensors(m)
	r := &ImportReport{Run: runDirectory, Parameters: m.Count(), DType: string(stored), Precision: cfg.Precision}
	if r.WeightsHash, _, err = checkpoint.HashTensors(weights); err != nil {
		return nil, err
	}
	from.Model = m.Config
	if err := store.Save(0, 0, weights, from); err != nil {
		return nil, err
	}
	return r, dir.finish(files)
}

// importTokenizer reads the tokenizer of a model with vocab rows, as a tokenizer and as the bytes of its file.
func importTokenizer(src, endOfText string, vocab int) (*tokenizer.Tokenizer, []byte, error) {
	path := filepath.Join(src, "tokenizer.json")
	if !isFile(path) {
		return nil, nil, &dataset.Error{Err: fmt.Errorf("%s has no tokenizer.json\n  download it from the "+
			"repository of the model; if that has only other tokenizer files, transformers makes it: "+
			"AutoTokenizer.from_pretrained(NAME).save_pretrained(%q)", src, src)}
	}
	t, err := tokenizer.Load(path)
	if err != nil {
		return nil, nil, &dataset.Error{Err: err}
	}
	if err := checkVocabulary(t, path, vocab); err != nil {
		return nil, nil, err
	}
	if err := interop.NameEndOfText(t, src, endOfText); err != nil {
		return nil, nil, &dataset.Error{Err: err}
	}
	text, err := fileio.ReadSmall(path, tokenizer.MaxFile)
	return t, bytes.TrimPrefix(text, []byte("\ufeff")), err // other programs refuse a byte order mark
}

// importState returns the state of a run with the model in src, without its shape.
func importState(src string, t *tokenizer.Tokenizer) (*state, error) {
	special, err := interop.ImportedTokens(t, src)
	if err != nil {
		return nil, err
	}
	template, err := hf.ChatTemplate(src)
	return &state{Tokenizer: t.Hash(), Imported: true, Special: &special, ChatTemplate: template}, err
}

// precisionOf returns the policy that computes with weights in their stored format. Weights in a format without a
// policy are computed in FP32, which is exact.
func precisionOf(stored safetensors.DType) string {
	switch stored {
	case safetensors.BF16:
		return "bf16"
	case safetensors.F16:
		return "fp16"
	}
	return "fp32"
}

// configOf returns the config of a run with the model in a directory, or an error if no config can represent that
// model.
func configOf(src string) (*config.Config, error) {
	described, err := hf.ReadConfig(src)
	if err != nil {
		return nil, err
	}
	c, err := interop.FromHF(described)
	if err != nil {
		return nil, err
	}
	cfg := importConfig(c, src)
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("config.json has settings that anneal does not support:\n%v", withoutAdvice(err))
	}
	if d := cfg.Model.Differences(c); d != nil {
		return nil, fmt.Errorf("the run's config would have %s = %s, but the model has %s",
			d[0].Key, d[0].Now, d[0].Was)
	}
	return cfg, nil
}

// withoutAdvice drops the advice from a config's error, because users cannot set these keys in an import.
func withoutAdvice(err error) error {
	var e *config.Error
	if !errors.As(err, &e) {
		return err
	}
	var list []error
	for _, p := range e.Problems {
		list = append(list, errors.New(p.Message))
	}
	return errors.Join(list...)
}

// importConfig returns the config of a model imported from dir; keys about training keep their defaults.
func importConfig(c model.Config, dir string) *config.Config {
	is := config.Default()
	is.Model = c
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	cfg, source := config.Default(), "the import of "+dir
	if err := cfg.TakeModel(is, source); err != nil {
		panic("train: " + err.Error()) // nothing was said that could differ
	}
	context := strconv.Itoa(c.Context)
	for key, value := range map[string]string{
		"model.vocab": strconv.Itoa(c.Vocab), "model.init_std": strconv.FormatFloat(c.InitStd, 'g', -1, 64),
		"train.micro_batch": "1", "train.batch_tokens": context, "data.path": "imported",
	} {
		cfg.Take(key, value, source)
	}
	cfg.Resolve()
	return cfg
}
