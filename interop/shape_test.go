package interop

import (
	"fmt"
	"reflect"
	"testing"

	"anneal/config"
	"anneal/hf"
	"anneal/model"
	"anneal/nn"
)

// No key of a shape is lost on the way out: with another value, config.json says something else, the weights are
// converted otherwise, or the export is refused.
func TestNoKeyOfAShapeIsLostInAnExport(t *testing.T) {
	inWeights := map[string]string{
		"mup": "folded into the weights", "mup_base_dim": "", "mup_base_head_dim": "", "mup_input_scale": "",
		"mup_output_scale": "", "rope_layout": "rows of queries and keys are permuted",
		"rope_original_context": "of a scaling that needs it only",
		"lora_alpha":            "merged into the weights, with lora_rank", "lora_targets": "", "lora_dora": "",
	}
	ofExperts := map[string]bool{ // validation refuses them elsewhere
		"experts": true, "experts_per_token": true, "expert_ffn": true, "shared_expert_ffn": true,
		"normalise_experts": true,
	}
	others := map[string]any{
		"family": "another", "attention": seen("window:4"), "positions": schemes("alibi"), "activation": "relu2",
		"value_embeddings": "all", "rope_scaling": nn.RoPEScaling{Kind: "linear", Factor: 2},
	}
	llama := config.Default().Model
	llama.KVHeads, llama.HeadDim, llama.FFN, llama.Vocab = 2, 64, 1024, 300
	gemma, second, experts := llama, llama, llama
	second.Family, second.Activation, second.AttentionSoftcap, second.Attention = "gemma2", "geglu", 50,
		seen("window:8,full")
	gemma.Family, gemma.Activation, gemma.QKNorm, gemma.RopeThetaLocal = "gemma3", "geglu", true, 1e4
	gemma.Attention = seen("window:8,full")
	experts.Family, experts.QKNorm = "qwen3_moe", true
	experts.Experts, experts.ExpertsPerToken, experts.ExpertFFN = 4, 2, 64
	say := func(c model.Config) string {
		described, err := ToHF(c, hf.Tokens{BOS: -1, Pad: -1}, "config.yaml")
		return fmt.Sprintf("%+v %v", described, err)
	}
	for _, base := range []model.Config{llama, second, gemma, experts} {
		was := say(base)
		if again := say(base); again != was {
			t.Fatalf("the same shape is described in two ways: %s and %s", was, again)
		}
		for i, f := range reflect.VisibleFields(reflect.TypeFor[model.Config]()) {
			key := f.Tag.Get("yaml")
			_, elsewhere := inWeights[key]
			if key == "-" || f.Tag.Get("weights") == "any" || elsewhere || base.Experts == 0 && ofExperts[key] {
				continue
			}
			c := base
			v := reflect.ValueOf(&c).Elem().Field(i)
			switch other, given := others[key]; {
			case given:
				v.Set(reflect.ValueOf(other).Convert(v.Type()))
			case v.Kind() == reflect.Bool:
				v.SetBool(!v.Bool())
			case v.CanInt():
				v.SetInt(v.Int() + 1)
			case v.CanFloat():
				v.SetFloat(2*v.Float() + 1)
			default:
				t.Errorf("model.%s needs another value in this test", key)
				continue
			}
			if say(c) == was {
				t.Errorf("%s: model.%s = %v is exported as %v is", base.Family, key, v, reflect.ValueOf(base).Field(i))
			}
		}
	}
}
