package run

import (
	"cmp"
	"path/filepath"

	"anneal/config"
	"anneal/tokenizer"
)

// Base is the model that the adapters of a run adapt.
type Base struct {
	Path string
	Run  bool // not a model in the Hugging Face layout

	tokenizer *tokenizer.Tokenizer
	vocab     int // rows of the embedding
}

// Base finds the model that the run's adapters adapt. A run that started from a run with adapters continues these, so
// Base follows init.from back to the first model without adapters.
func (w *Weights) Base() (*Base, error) {
	b := &Base{Path: w.Config.Init.From}
	cfg, err := b.read()
	for seen := map[string]bool{}; err == nil && b.Run && cfg.Model.LoRARank > 0 && !seen[b.Path]; {
		seen[b.Path] = true
		b.Path = cfg.Init.From
		cfg, err = b.read()
	}
	if err != nil {
		return nil, err
	}
	path := filepath.Join(b.Path, "tokenizer.json") // of both
	if b.tokenizer, err = tokenizer.Load(path); err != nil {
		return nil, err
	}
	b.vocab = cmp.Or(cfg.Model.Vocab, b.tokenizer.VocabSize())
	return b, nil
}

// read returns the configuration of the model in b.Path, and says which kind it is.
func (b *Base) read() (*config.Config, error) {
	if b.Run = Exists(b.Path); b.Run {
		return runDir(b.Path).load()
	}
	return configOf(b.Path)
}

// HasVocabularyOf reports whether w and the base have the same tokens and the same number of rows.
func (b *Base) HasVocabularyOf(w *Weights) bool {
	return b.vocab == w.Config.Model.Vocab && b.tokenizer.Hash() == w.Tokenizer.Hash()
}
