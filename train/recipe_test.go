package train

import (
	"path/filepath"
	"testing"

	"anneal/train/config"
)

// The parameters of each recipe, counted on the model's own code, are those of the released weights or, where there are
// none, of the paper's shape.
func TestRecipesHaveTheParametersOfTheirModels(t *testing.T) {
	want := map[string]int64{
		"llama2-7b": 6_738_415_616, "llama2-13b": 13_015_864_320, "llama2-70b": 68_976_648_192,
	}
	for _, name := range config.Recipes() {
		cfg, err := config.Sources{Recipe: name, Planning: true}.Load()
		if err != nil {
			t.Fatal(err)
		}
		p, err := PlanOf(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if p.Parameters != want[name] {
			t.Errorf("%s has %d parameters, want %d", name, p.Parameters, want[name])
		}
	}
}

// Made small enough, every recipe trains on data with another vocabulary, and its loss falls.
func TestScaledRecipesTrain(t *testing.T) {
	data := testData(t)
	for _, name := range config.Recipes() {
		cfg, err := config.Sources{Recipe: name, Scale: 1e6, Overrides: []string{
			"data.path=" + data, "train.steps=30", "schedule.warmup=3", "train.batch_tokens=1024", "train.micro_batch=4", "train.eval_tokens=256",
		}}.Load()
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
