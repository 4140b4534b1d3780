package config

import (
	"fmt"
	"strings"
	"testing"
)

// A vocabulary other than the tokenizer's is an error that says both, unless it is padding or that of a run that has
// begun.
func TestVocabularyGoesWithTheTokenizer(t *testing.T) {
	for _, c := range []struct {
		vocab, tokens int
		says          string
	}{
		{0, 2048, ""}, {2048, 2048, ""}, {50304, 50257, "pads the 50257"}, {151936, 151669, "pads"},
		{3008, 2048, "pads"},
		{2047, 2048, "2047 is smaller than the 2048 tokens"}, {2050, 2048, "2050, but the tokenizer of d has 2048"},
		{3072, 2048, "never be trained"}, {32000, 2048, "such as 2112"},
	} {
		cfg, err := Sources{Overrides: []string{"data.path=d", fmt.Sprintf("model.vocab=%d", c.vocab)}}.Load()
		if err != nil {
			t.Fatal(err)
		}
		err = cfg.SetVocabulary(c.tokens, "d")
		pads := strings.HasPrefix(c.says, "pads")
		if fails := c.says != "" && !pads; fails != (err != nil) || fails && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%d for a tokenizer of %d: %v, want %q", c.vocab, c.tokens, err, c.says)
		}
		if said := strings.Join(cfg.Remarks(), "\n"); pads != (said != "") || pads && !strings.Contains(said, c.says) {
			t.Errorf("%d for a tokenizer of %d: said %q, want %q", c.vocab, c.tokens, said, c.says)
		}
		if err == nil && cfg.Model.Vocab != max(c.vocab, c.tokens) {
			t.Errorf("%d for a tokenizer of %d became %d", c.vocab, c.tokens, cfg.Model.Vocab)
		}
		started, err := Sources{Overrides: []string{"data.path=d", fmt.Sprintf("model.vocab=%d", c.vocab)},
			Started: true}.Load()
		if err != nil {
			t.Fatal(err)
		}
		if err := started.SetVocabulary(c.tokens, "d"); c.vocab >= c.tokens && err != nil {
			t.Errorf("a run that began with %d for a tokenizer of %d: %v", c.vocab, c.tokens, err)
		}
		taken, err := Sources{Overrides: []string{"data.path=d"}}.Load()
		if err != nil {
			t.Fatal(err)
		}
		taken.Take("model.vocab", fmt.Sprint(c.vocab), "the weights of w")
		if err := taken.SetVocabulary(c.tokens, "d"); c.vocab >= c.tokens && (err != nil || taken.Remarks() != nil) {
			t.Errorf("%d of the weights for a tokenizer of %d: %v, %v", c.vocab, c.tokens, err, taken.Remarks())
		}
	}
}
