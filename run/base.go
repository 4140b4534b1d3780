package run

import (
	"cmp"
	"path/filepath"
	"slices"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/model"
	"anneal/nn"
	"anneal/tokenizer"
)

// Base is the model that the adapters of a run adapt.
type Base struct {
	Path string
	Run  bool // not a model in the Hugging Face layout
	Step int  // of the run's checkpoint; 0 for imported weights

	init      config.Init // names it
	tokenizer *tokenizer.Tokenizer
	model     model.Config
}

// Base finds the model that the run's adapters adapt. A run that started from a run with adapters continues these, so
// Base follows init.from back to the first model without adapters.
func (w *Weights) Base() (*Base, error) {
	b := &Base{init: w.Config.Init}
	cfg, err := b.read()
	for seen := map[string]bool{}; err == nil && b.Run && cfg.Model.LoRARank > 0 && !seen[b.Path]; {
		seen[b.Path] = true
		b.init = cfg.Init
		cfg, err = b.read()
	}
	if err != nil {
		return nil, err
	}
	path := filepath.Join(b.Path, "tokenizer.json") // of both
	if b.tokenizer, err = tokenizer.Load(path); err != nil {
		return nil, err
	}
	b.model = cfg.Model
	b.model.Vocab = cmp.Or(cfg.Model.Vocab, b.tokenizer.VocabSize())
	return b, nil
}

// read returns the configuration of the model that b.init names, and says which kind it is.
func (b *Base) read() (*config.Config, error) {
	b.Path, b.Step = b.init.From, b.init.Step
	if b.Run = Exists(b.Path); b.Run {
		return runDir(b.Path).load()
	}
	return configOf(b.Path)
}

// HasVocabularyOf reports whether w and the base have the same tokens and the same number of rows.
func (b *Base) HasVocabularyOf(w *Weights) bool {
	return b.model.Vocab == w.Config.Model.Vocab && b.tokenizer.Hash() == w.Tokenizer.Hash()
}

// HasPositionsOf reports whether w and the base turn rotary positions alike.
func (b *Base) HasPositionsOf(w *Weights) bool {
	now := w.Config.Model
	turns := func(c model.Config) []float64 {
		s, l := c.RopeScaling, nn.Lengths{Original: c.RopeOriginalContext, Positions: c.Context}
		return append(s.Frequencies(now.RotatedDim(), c.RopeTheta, l), s.AttentionFactor(l.Original))
	}
	return slices.Equal(turns(b.model), turns(now))
}

// RopeScaling returns model.rope_scaling of the base.
func (b *Base) RopeScaling() nn.RoPEScaling { return b.model.RopeScaling }

// HasInitialWeights reads the weights of the base, and reports whether they are those that the adapters began with.
// It takes their memory.
func (b *Base) HasInitialWeights() (bool, error) {
	w, err := openInitial(b.init)
	if err != nil {
		return false, err
	}
	src, params, err := w.load()
	if err != nil {
		return false, err
	}
	defer params.Close()
	hash, _, err := checkpoint.HashTensors(weightTensors(src))
	return hash == cmp.Or(b.init.Weights, hash), err
}
