package config

import (
	"strings"
	"testing"
)

// Adapters have a scale, and what they do not work with is refused by name.
func TestAdaptersAreChecked(t *testing.T) {
	const text = minimal + "init: {from: base}\nmodel: {lora_rank: 4}\n"
	c, err := parse([]byte(text), "run.yaml", nil)
	if err != nil || c.Model.LoRAAlpha != 8 {
		t.Fatalf("%v: α = %v", err, c.Model.LoRAAlpha)
	}
	for set, says := range map[string]string{
		"init.from=":                             "without init.from",
		"init.ewc=1":                             "with init.ewc",
		"parallel.ranks=2":                       "on several ranks",
		"precision=fp8":                          "with precision = fp8",
		"model.mup=true":                         "with model.mup",
		"model.family=qwen3_moe":                 "with experts",
		"optimizer.name=schedulefree":            "with optimizer.name = schedulefree",
		"model.lora_targets=[":                   "is no pattern",
		"model.lora_rank=-1":                     "too small",
		"optimizer.groups.matrix.lr_ratio=0":     "nothing would be trained",
		"optimizer.groups.embedding.lr_ratio=2":  "has no effect with model.lora_rank",
		"optimizer.groups.norm.weight_decay=0.1": "has no effect with model.lora_rank",
		"model.lora_rank=0 model.lora_alpha=3":   "has no effect",
		"model.lora_rank=0 model.lora_dora=true": "has no effect",
	} {
		_, err := parse([]byte(text), "run.yaml", strings.Fields(set))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", set, err)
		}
	}
}
