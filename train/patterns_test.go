package train

import (
	"strings"
	"testing"

	"anneal/dataset"
)

// Parameters that a pattern freezes keep their weights, all others move; a pattern without a match is an error.
func TestPatternsFreezeByName(t *testing.T) {
	cfg := smallConfig(t, "data", "model.vocab=64", "optimizer.patterns=layers.1.* lr_ratio=0; embed lr_ratio=0.5")
	tr := trainerOf(t, cfg, 1)
	before := map[string][]float32{}
	for _, p := range tr.Model().Params() {
		before[p.Name] = append([]float32(nil), p.Value.F32()...)
	}
	src := dataset.NewRandom(cfg.Model.Vocab, cfg.Model.Context, cfg.Seed)
	for range 3 {
		if _, err := tr.Step(t.Context(), src); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range tr.Model().Params() {
		moved := false
		for i, x := range p.Value.F32() {
			moved = moved || x != before[p.Name][i]
		}
		if frozen := strings.HasPrefix(p.Name, "layers.1."); moved == frozen {
			t.Errorf("%s: moved %v", p.Name, moved)
		}
	}
	cfg = smallConfig(t, "data", "model.vocab=64", "optimizer.patterns=layers.7.* lr_ratio=0")
	if _, err := New(cfg, tr.dev); err == nil || !strings.Contains(err.Error(), "layers.7.*") {
		t.Errorf("a pattern that matches nothing: %v", err)
	}
}
