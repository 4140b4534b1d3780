package config

import (
	"strings"
	"testing"
)

func TestMuPDerivesTheBaseModel(t *testing.T) {
	for _, c := range []struct {
		overrides string
		head, ffn int
	}{
		{"model.dim=768 model.heads=12", 64, 704}, // 8/3 · 256 to a multiple of 64, as 2048 is of 768
		{"model.dim=768 model.heads=12 model.ffn=3072", 64, 1024},
		{"model.dim=512 model.heads=4 model.mup_base_dim=128", 128, 384},
		{"model.dim=512 model.heads=4 model.mup_base_head_dim=32 model.mup_base_ffn=500", 32, 500},
	} {
		cfg, err := parse([]byte(minimal), "run.yaml", append(strings.Fields(c.overrides), "model.mup=true"))
		if err != nil {
			t.Fatal(err)
		}
		if m := cfg.Model; m.MuPBaseHeadDim != c.head || m.MuPBaseFFN != c.ffn {
			t.Errorf("%s: base head %d, ffn %d; want %d, %d",
				c.overrides, m.MuPBaseHeadDim, m.MuPBaseFFN, c.head, c.ffn)
		}
		again, err := parse(cfg.YAML(), "config.yaml", nil)
		if err != nil || again.Model.Differences(cfg.Model) != nil {
			t.Errorf("%s: read back, %v, the model is %+v, want %+v", c.overrides, err, again.Model, cfg.Model)
		}
	}
}

func TestMuPThatCannotWork(t *testing.T) {
	for _, c := range []struct{ overrides, key string }{
		{"model.mup_base_dim=0", "model.mup_base_dim"},
		{"model.mup_base_head_dim=-1", "model.mup_base_head_dim"},
		{"model.mup_base_layers=-1", "model.mup_base_layers"},
		{"model.mup_input_scale=0", "model.mup_input_scale"},
		{"model.mup_output_scale=-2", "model.mup_output_scale"},
		{"optimizer.name=adafactor", "model.mup"},
		{"optimizer.name=sophia", "model.mup"},
	} {
		p := problemsOf(t, minimal, "model.mup=true", c.overrides)
		if p[0].Key != c.key {
			t.Errorf("%s: %+v, want a problem of %s", c.overrides, p, c.key)
		}
	}
}
