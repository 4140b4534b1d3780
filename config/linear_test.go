package config

import (
	"strings"
	"testing"
)

// Linear layers are one line, in turn with others if wanted; what they cannot have is refused, with the layer.
func TestLinearAttentionInAConfig(t *testing.T) {
	for text, want := range map[string]string{
		"linear": "linear", "linear:gated": "linear:gated",
		"delta": "delta", "delta:gated": "delta:gated", "gla": "gla",
		"[linear:gated, linear:gated, full]": "linear:gated,linear:gated,full",
	} {
		c, err := parse([]byte(minimal+"model:\n  attention: "+text+"\n"), "run.yaml", nil)
		if err != nil || c.Model.Attention.String() != want {
			t.Errorf("%s is read as %q: %v", text, c.Model.Attention, err)
		}
	}
	for _, c := range []struct{ model, key, want string }{
		{"attention: linear:3", "model.attention", "its one option is gated"},
		{"attention: linear:gated:gated", "model.attention", "its one option is gated"},
		{"attention: delta:3", "model.attention", "its one option is gated"},
		{"attention: [full, delta]\n  positions: alibi", "model.positions",
			"layer 1 combines model.attention = delta with model.positions = alibi"},
		{"attention: gla\ndevice: cuda", "model.attention", "model.attention = gla has no kernel"},
		{"attention: gla\nparallel:\n  ranks: 2\n  tensor: 2", "model.attention", "cannot be cut"},
		{"attention: [full, delta:gated]\ndevice: cuda", "model.attention", "no kernel for device = cuda"},
		{"attention: linear\n  positions: alibi", "model.positions",
			"layer 0 combines model.attention = linear with model.positions = alibi"},
		{"attention: [full, linear:gated]\n  positions: [alibi, none, alibi, alibi]", "model.positions",
			"layer 3 combines model.attention = linear:gated"},
		{"attention: linear\n  rope_theta: 500", "model.rope_theta", "has no effect"},
	} {
		p := problemsOf(t, minimal+"model:\n  "+c.model+"\n")
		if len(p) != 1 || p[0].Key != c.key || !strings.Contains(p[0].Message, c.want) || p[0].Try == "" ||
			!strings.HasPrefix(p[0].At, "run.yaml:") {
			t.Errorf("%s: %+v; want %q", c.model, p, c.want)
		}
	}
	for _, model := range []string{
		"attention: [linear:gated, full]\n  positions: [none, alibi]", "attention: [linear, full]\n  rope_theta: 500",
		"heads: 128\n  attention: linear", // heads of three elements, which nothing turns
	} {
		if _, err := parse([]byte(minimal+"model:\n  "+model+"\n"), "run.yaml", nil); err != nil {
			t.Errorf("%s: %v", model, err)
		}
	}
	for _, name := range []string{"linear:gated", "delta:gated", "gla"} {
		biases := minimal + "model:\n  attention: " + name + "\noptimizer:\n  groups:\n    bias:\n      lr_ratio: 2\n"
		if _, err := parse([]byte(biases), "run.yaml", nil); err != nil {
			t.Errorf("%s: gates have biases: %v", name, err)
		}
	}
}

// The biases of gates are weights as others: where they alone decay, what is said of decay has an effect.
func TestBiasesOfGatesDecay(t *testing.T) {
	decay := []string{
		"optimizer.weight_decay=0", "optimizer.groups.bias.weight_decay=0.1", "optimizer.cautious_decay=true",
	}
	if _, err := parse([]byte(minimal), "run.yaml", append(decay, "model.attention=linear:gated")); err != nil {
		t.Errorf("with gates: %v", err)
	}
	if p := problemsOf(t, minimal, append(decay, "model.attention=linear")...); len(p) != 2 {
		t.Errorf("without biases: %+v, want one problem with their decay and one with its caution", p)
	}
}
