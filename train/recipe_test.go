package train

import (
	"math"
	"strings"
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
		"chinchilla-70b": 64_695_189_504, "smollm-135m": 134_515_008,
		"deepseek-7b": 6_910_365_696, "deepseek-67b": 67_425_001_472,
		"olmo2-7b":   7_298_617_344,
		"qwen3-0.6b": 596_049_920, "qwen3-8b": 8_190_735_360,
		"llama3-8b": 8_030_261_248, "llama3-70b": 70_553_706_496, "llama3-405b": 405_853_388_800,
		"standard-7m": 6_917_376, "standard-30m": 29_893_120, "standard-130m": 134_105_856,
		"standard-370m": 373_867_520, "standard-1.1b": 1_158_760_448, "standard-2.7b": 2_701_560_320,
		"standard-7b": 6_738_415_616, "standard-13b": 13_015_864_320, "standard-33b": 32_528_943_616,
		"standard-70b": 68_976_648_192,
	}
	for _, name := range config.Recipes() {
		if _, n := countedRecipe(t, name); n != want[name] {
			t.Errorf("%s has %d parameters, want %d", name, n, want[name])
		}
	}
}

// countedRecipe loads a recipe and counts its parameters.
func countedRecipe(t *testing.T, name string) (*config.Config, int64) {
	t.Helper()
	cfg, err := config.Sources{Recipe: name, Planning: true}.Load()
	if err != nil {
		t.Fatal(err)
	}
	f, err := MeasureRun(cfg, device.Null{})
	if err != nil {
		t.Fatal(err)
	}
	return cfg, model.Outline(f.Model, f.Policy).Count()
}

// The standard recipes follow their rules: 20 tokens for a parameter, and the rate and batch of DeepSeek's law.
func TestStandardRecipesFollowTheirRules(t *testing.T) {
	sizes := 0
	for _, name := range config.Recipes() {
		if !strings.HasPrefix(name, "standard-") {
			continue
		}
		cfg, count := countedRecipe(t, name)
		n, tokens := float64(count), float64(cfg.Tokens())
		compute := 6 * n * 20 * n
		for what, x := range map[string]struct{ is, want, factor float64 }{
			"tokens per parameter": {tokens / n, 20, 1.001},
			"rate":                 {cfg.Optimizer.LR, 0.3118 * math.Pow(compute, -0.125), 1.02},
			"batch":                {float64(cfg.Train.BatchTokens), 0.2920 * math.Pow(compute, 0.3271), math.Sqrt2},
			"warmup":               {float64(cfg.Schedule.Warmup), min(0.01*float64(cfg.Train.Steps), 2000), 1.02},
			"ffn over 8/3 dim":     {float64(cfg.Model.FFN) / float64(cfg.Model.Dim) * 3 / 8, 1.1, 1.2},
		} {
			if math.Abs(math.Log(x.is/x.want)) > math.Log(x.factor) {
				t.Errorf("%s: %s is %g, the rule says %g", name, what, x.is, x.want)
			}
		}
		sizes++
	}
	if sizes != 10 {
		t.Errorf("%d sizes", sizes)
	}
}
