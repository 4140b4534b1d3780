package train

import (
	"testing"

	"anneal/config"
	"anneal/device"
	"anneal/model"
)

// The parameters of each recipe, counted on the model's own code, are those of the released weights or, where there
// are none, of the paper's shape.
func TestRecipesHaveTheParametersOfTheirModels(t *testing.T) {
	want := map[string]int64{
		"llama2-7b": 6_738_415_616, "llama2-13b": 13_015_864_320, "llama2-70b": 68_976_648_192,
		"mistral-7b": 7_241_732_096, "gpt2-small": 124_439_808, "gpt3-125m": 125_226_240, "gpt3-350m": 355_871_744,
		"gpt3-6.7b": 6_658_404_352, "gpt3-175b": 174_604_259_328,
		"chinchilla-70b": 64_695_189_504,
	}
	for _, name := range config.Recipes() {
		cfg, err := config.Sources{Recipe: name, Planning: true}.Load()
		if err != nil {
			t.Fatal(err)
		}
		f, err := MeasureRun(cfg, device.Null{})
		if err != nil {
			t.Fatal(err)
		}
		if n := model.Outline(f.Model, f.Policy).Count(); n != want[name] {
			t.Errorf("%s has %d parameters, want %d", name, n, want[name])
		}
	}
}
