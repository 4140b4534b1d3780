package plan

import (
	"strings"
	"testing"

	"anneal/config"
	"anneal/device"
)

// The share of Newton–Schulz in a step is 5·m/B for square matrices: 31 % at width 512 and 8,192 tokens, under 1 % at
// width 768 and 524,288. Only the first is worth a remark.
func TestMuonRemarksOnItsCost(t *testing.T) {
	remark := func(set ...string) string {
		cfg, err := config.Load("",
			append([]string{"data.path=x", "optimizer.name=muon", "model.vocab=64", "model.heads=8"}, set...))
		if err != nil {
			t.Fatal(err)
		}
		p, err := For(cfg, device.Null{})
		if err != nil {
			t.Fatal(err)
		}
		return p.OptimizerRemark(cfg)
	}
	small := remark("model.dim=512", "model.ffn=512",
		"model.context=256", "train.batch_tokens=8192", "model.tie_embeddings=false")
	if !strings.Contains(small, "29 %") { // 31 % of the products with matrices; attention takes some, too
		t.Errorf("8,192 tokens of width 512: %q", small)
	}
	if large := remark("model.dim=768", "train.batch_tokens=524288"); large != "" {
		t.Errorf("524,288 tokens of width 768: %q", large)
	}
	if other := remark("model.dim=512", "train.batch_tokens=8192", "optimizer.name=adamw"); other != "" {
		t.Errorf("adamw: %q", other)
	}
}
