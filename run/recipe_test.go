package run

import (
	"path/filepath"
	"testing"

	"anneal/config"
	"anneal/train/traintest"
)

// Made small enough, every recipe trains on data with another vocabulary, and its loss falls.
func TestScaledRecipesTrain(t *testing.T) {
	data := traintest.Data(t)
	for _, name := range config.Recipes() {
		whole, err := config.Sources{Recipe: name, Planning: true}.Load()
		if err != nil {
			t.Fatal(err)
		}
		const tokens = 30e3
		cfg, err := config.Sources{Recipe: name, Scale: min(float64(whole.Tokens())/tokens, 1e9),
			Overrides: []string{"data.path=" + data, "train.eval_every=0", "train.eval_tokens=256"}}.Load()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		dir := filepath.Join(t.TempDir(), "run")
		mustRun(t, Options{Config: cfg, Dir: dir})
		m := readMetrics(t, dir)
		if first, last := m[0]["loss"].(float64), m[len(m)-1]["loss"].(float64); !(last < 0.9*first) {
			t.Errorf("%s: the loss goes from %v to %v", name, first, last)
		}
	}
}
