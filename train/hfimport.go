package train

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"anneal/device"
	"anneal/hf"
	"anneal/model"
	"anneal/precision"
	"anneal/tensor"
	"anneal/tokenizer"
	"anneal/train/checkpoint"
	"anneal/train/config"
)

// loadHF reads a model directory into weights of a policy's master type, which live in the arena of m that it returns.
func loadHF(dir string, p precision.Policy, m device.Memory) (*model.Decoder, *tensor.Arena, error) {
	src, err := hf.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	defer src.Close()
	c, err := fromHF(src.Config)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", dir, err)
	}
	params, err := m.NewArena("parameters", model.Measure(c, p, 1, c.Context, false).Params)
	if err != nil {
		return nil, nil, err
	}
	decoder := model.New(c, model.Memory{Device: m, Params: params, DType: p.Master})
	for _, v := range decoder.HFViews() {
		values := make([]float32, v.Tensor.Len())
		if err := src.Read(v.Name, values); err != nil {
			params.Close()
			return nil, nil, err
		}
		v.SetValues(values)
	}
	return decoder, params, nil
}

// ImportHF makes a run directory from a model in Hugging Face layout: its configuration, tokenizer and one checkpoint,
// ready to generate, evaluate and export.
func ImportHF(src, runDirectory string) error {
	if err := CheckNewRun(runDirectory); err != nil {
		return err
	}
	cfg, err := configOf(src)
	if err != nil {
		return &DataError{fmt.Errorf("%s: %w", src, err)}
	}
	fp32, err := precision.Lookup("fp32")
	if err != nil {
		return err
	}
	m, params, err := loadHF(src, fp32, device.Host{})
	if err != nil {
		return &DataError{err}
	}
	defer params.Close()
	path := filepath.Join(src, "tokenizer.json")
	t, err := tokenizer.Load(path)
	if err != nil {
		return &DataError{err}
	}
	if err := checkVocabulary(t, path, m.Config.Vocab); err != nil {
		return err
	}
	tok, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	dir := runDir(runDirectory)
	if err := dir.create(cfg, tok); err != nil {
		return err
	}
	store, err := checkpoint.Open(dir.checkpoints(), checkpoint.Options{Synchronous: true})
	if err != nil {
		return err
	}
	defer store.Close()
	return store.Save(0, 0, weightTensors(device.Host{}, m), &state{Model: m.Config, Tokenizer: t.Hash()})
}

// configOf is the config of a run with the model in a directory, or an error if none would be that model.
func configOf(src string) (*config.Config, error) {
	described, err := hf.ReadConfig(src)
	if err != nil {
		return nil, err
	}
	c, err := fromHF(described)
	if err != nil {
		return nil, err
	}
	cfg := importConfig(c)
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("config.json asks for what this program does not run:\n%v", withoutAdvice(err))
	}
	is := modelConfig(cfg)
	is.Init, is.ZeroInit = c.Init, c.ZeroInit // of a training that is over
	if is != c {
		return nil, fmt.Errorf("the config of the run to make would say %+v, but the model is %+v", is, c)
	}
	return cfg, nil
}

// withoutAdvice is what is wrong with a config, without what to try: nobody sets these keys in an import.
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

// importConfig describes an imported model; what concerns training keeps its defaults.
func importConfig(c model.Config) *config.Config {
	cfg := config.Default()
	m := &cfg.Model
	m.Family, m.Positions, m.Activation = c.Family, c.Positions, c.Activation
	m.Layers, m.Dim, m.Heads, m.KVHeads, m.HeadDim, m.FFN = c.Layers, c.Dim, c.Heads, c.KVHeads, c.HeadDim, c.FFN
	m.Context, m.Vocab, m.TieEmbeddings, m.QKNorm = c.Context, c.Vocab, c.TieEmbeddings, c.QKNorm
	m.Attention = c.Attention
	m.RopeScaling, m.RopeOriginalContext = c.RopeScaling.String(), c.RopeScaling.Original
	m.RopeTheta, m.NormEps, m.InitStd = c.RopeTheta, c.NormEps, c.InitStd
	cfg.Train.MicroBatch, cfg.Train.BatchTokens = 1, c.Context
	cfg.Data.Path = "imported"
	cfg.Resolve()
	return cfg
}
