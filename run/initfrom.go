package run

import (
	"fmt"
	"path/filepath"
	"strconv"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/internal/shellword"
	"anneal/model"
	"anneal/nn"
	"anneal/prepare"
	"anneal/tensor"
	"anneal/tokenizer"
	"anneal/train"
)

// A run can start from existing weights, for continued pre-training or fine-tuning: init.from names a run or a model
// in the Hugging Face layout.
//
//	shape        that of the weights; a different value of a model.* key is an error (config.TakeModel)
//	context      free with rotary positions, ALiBi or none; learned positions can only be shortened
//	vocabulary   that of the data set, row by row (vocabulary)
//	optimizer    new, at step 0: its state belongs to another schedule; `anneal branch` continues with it
//	schedule     the run's own, so the learning rate is warmed up again (Gupta et al. 2023, arXiv 2308.04014)
//
// The checkpoint of step 0 is written before the run exists, so a resume never reads init.from and never starts from
// random weights. Not for continuing a run unchanged, which resume and branch do bit for bit.

// LoadConfig is from.Load for a config that may have init.from, whose weights then determine the shape of the model,
// and a teacher.
func LoadConfig(from config.Sources) (*config.Config, error) {
	from.Weights, from.Teacher = takeWeights, takeTeacher
	return from.Load()
}

// takeWeights completes a config from the description of the init.from weights, without reading them.
func takeWeights(cfg *config.Config) error {
	w, err := openInitial(cfg.Init)
	if err != nil {
		return err
	}
	if err := cfg.TakeModel(w.config, w.source()); err != nil {
		return err
	}
	if w.step > 0 && cfg.Init.Step == 0 {
		cfg.Derive("init.step", int(w.step), "the newest checkpoint of "+w.dir)
	}
	return w.takeVocabulary(cfg)
}

// takeVocabulary sets model.vocab, unless the config gives it: with the tokenizer of the weights, or without data, to
// their number of rows; else to the size of the tokenizer of the data.
func (w *initial) takeVocabulary(cfg *config.Config) error {
	tok, path := tokenizerOfData(cfg)
	same := tok == nil || tok.Hash() == w.tokenizer.Hash()
	switch rows, given := w.config.Model.Vocab, cfg.Given("model.vocab"); {
	case given && (!same || cfg.Model.Vocab != rows):
	case same:
		cfg.Take("model.vocab", strconv.Itoa(rows), w.source())
	default:
		cfg.Derive("model.vocab", tok.VocabSize(), "the tokenizer of "+filepath.Dir(path))
	}
	if tok == nil || cfg.Model.Vocab < tok.VocabSize() {
		return nil // opening the data reports the error
	}
	v, err := w.vocabulary(cfg, tok, path)
	switch {
	case err != nil:
		return err
	case !tokenizer.Related(w.tokenizer, tok):
		cfg.Remark("the data has another tokenizer than the weights: " + v.String())
	case v.rows != nil:
		cfg.Remark(v.String())
	}
	return nil
}

// tokenizerOfData returns the tokenizer of a config's data and its path; nil if it cannot be read.
func tokenizerOfData(cfg *config.Config) (*tokenizer.Tokenizer, string) {
	sources, err := cfg.Sources()
	if err != nil || !cfg.HasData() {
		return nil, ""
	}
	set, err := dataset.Open(sources[0].Path)
	if err != nil {
		return nil, ""
	}
	defer set.Close()
	tok, err := prepare.OpenTokenizer(set)
	if err != nil {
		return nil, ""
	}
	return tok, filepath.Join(set.Dir, "tokenizer.json")
}

// vocabulary plans the conversion of the weights' rows to those of cfg, whose data has the tokenizer now. It rejects
// a tokenizer unrelated to that of the weights unless the config accepts any.
func (w *initial) vocabulary(cfg *config.Config, now *tokenizer.Tokenizer, path string) (*vocabulary, error) {
	v := newVocabulary(w.tokenizer, now, w.config.Model.Vocab, cfg.Model.Vocab)
	if cfg.Init.Tokenizer == "any" || tokenizer.Related(w.tokenizer, now) {
		return v, nil
	}
	return nil, &dataset.Error{Err: fmt.Errorf("the data was built with another tokenizer than the weights have: "+
		"only %d of its %d tokens have a row there\n"+
		"  data     %s\n  weights  %s\n"+
		"  rebuild the data with `anneal data build --tokenizer %s`, "+
		"or carry rows over by token with init.tokenizer=any", v.carried, v.tokens, path, w.path,
		shellword.Command(w.path))}
}

// startFrom fills t's model with the weights of cfg.Init and records their origin in cfg, on all ranks of a group.
// Without data, which may be nil, the tokenizer is that of the weights.
func startFrom(t *train.Trainer, cfg *config.Config, data *prepare.Corpus, world group) error {
	src, params, rows, err := readInitial(cfg, data)
	if params != nil {
		defer params.Close()
	}
	if err := world.agree(err); err != nil {
		return err
	}
	if err := copyWeights(t, cfg, src, rows); err != nil || cfg.Init.EWC == 0 {
		return err
	}
	return hold(t, cfg)
}

// readInitial reads the weights of cfg.Init, and records their origin in cfg. The caller closes their arena, which may
// be nil.
func readInitial(cfg *config.Config, data *prepare.Corpus) (*model.Decoder, *tensor.Arena, *vocabulary, error) {
	w, err := openInitial(cfg.Init)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := cfg.CheckModel(w.config, w.source()); err != nil {
		return nil, nil, nil, err
	}
	now, path := w.tokenizer, w.path
	if data != nil {
		now, path = data.Tokenizer, data.TokenizerPath
	}
	rows, err := w.vocabulary(cfg, now, path)
	if err != nil {
		return nil, nil, nil, err
	}
	src, params, err := w.load()
	if err != nil {
		return nil, nil, nil, err
	}
	return src, params, rows, w.record(cfg, src)
}

// record records the hash of the weights in cfg, and refuses weights other than those that cfg names.
func (w *initial) record(cfg *config.Config, src *model.Decoder) error {
	hash, _, err := checkpoint.HashTensors(weightTensors(src))
	if err != nil {
		return err
	}
	if want := cfg.Init.Weights; want != "" && want != hash {
		return config.Problem{
			Key: "init.weights", At: cfg.Origin("init.weights").Place(),
			Try:     "the expected weights, or removing init.weights",
			Message: fmt.Sprintf("%s have the hash %.16s…, but init.weights = %.16s…", w.source(), hash, want),
		}
	}
	if cfg.Init.Weights == "" {
		cfg.DeriveText("init.weights", hash, "the hash of what was read")
	}
	if w.step > 0 && cfg.Init.Step == 0 {
		cfg.Derive("init.step", int(w.step), "the newest checkpoint of "+w.dir)
	}
	return nil
}

// copyWeights fills the model with the weights of src, which may have another vocabulary and another length of rows.
func copyWeights(t *train.Trainer, cfg *config.Config, src *model.Decoder, rows *vocabulary) error {
	from := map[string]*nn.Param{}
	for _, p := range src.Params() {
		from[p.Name] = p
	}
	for _, p := range t.Model().Params() {
		if from[p.Name] == nil && !model.IsAdapter(p) {
			return fmt.Errorf("the weights have no parameter %s", p.Name)
		}
	}
	return t.SetWeights(func(p *nn.Param, host *tensor.Tensor) {
		switch x := from[p.Name]; {
		case x == nil: // an adapter starts as it would without weights, or from the norms of those that it adapts
			if weight, is := model.Magnitude(p); is {
				model.RowNorms(host, &from[weight].Value)
				return
			}
			fresh := *p
			fresh.Value, fresh.First, fresh.Region = *host, 0, nn.Whole(p.Shape)
			fresh.Init(device.Host{}, cfg.Seed, p.Number)
		case rows.rows != nil && p.Name == "bigram": // a pair of other tokens has another row
			clear(host.Raw())
		case rows.rows != nil && ofTokens(p):
			rows.fill(host, &x.Value)
		default:
			copyValues(host, &x.Value)
		}
	})
}

// ofTokens reports whether a parameter has one row per token.
func ofTokens(p *nn.Param) bool {
	return p.Role == nn.Head || p.Role == nn.Embedding && p.Name != "positions"
}

// copyValues fills dst with the first values of src: all of them, or the first rows of learned positions.
func copyValues(dst, src *tensor.Tensor) {
	if dst.DType() == src.DType() {
		copy(dst.Raw(), src.Raw())
		return
	}
	for i := range dst.Len() {
		dst.SetFloat64(i, src.Float64(i))
	}
}
