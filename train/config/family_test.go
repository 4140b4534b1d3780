package config

import (
	"fmt"
	"strings"
	"testing"
)

// One line makes the recipe; what is said of a key goes before it; a resolved config says the same again, and follows another
// family.
func TestAFamilyIsOneLine(t *testing.T) {
	get := func(c *Config, name string) string { return c.value(allKeys[keyIndex[name]]) }
	c, err := parse([]byte(minimal+"model: {family: anneal, x0_skip: false}\n"), "run.yaml", []string{"model.logit_softcap=0"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range families[1].values {
		switch name {
		case "model.x0_skip":
			want = "false"
		case "model.logit_softcap":
			want = "0"
		default:
			if rule := c.Origin(name).Rule; !strings.HasSuffix(rule, " of anneal") {
				t.Errorf("%s comes from %q", name, c.Origin(name))
			}
		}
		if got := get(c, name); got != want {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
	if want := fmt.Sprint(4 * c.Model.Dim); get(c, "model.ffn") != want {
		t.Errorf("ffn = %d, want %s", c.Model.FFN, want)
	}
	again, err := parse([]byte(c.YAML()), "again.yaml", nil)
	if err != nil || string(again.YAML()) == "" || again.Model != c.Model {
		t.Errorf("read again: %v\n%+v, want\n%+v", err, again.Model, c.Model)
	}
	llama, err := parse([]byte(c.YAML()), "again.yaml", []string{"model.family=llama"})
	if err != nil {
		t.Fatal(err)
	}
	if m := llama.Model; m.QKNorm || m.Activation != "swiglu" || m.FFN != 1024 || m.ZeroInit != "none" {
		t.Errorf("as a llama: %+v", m)
	}
}

func TestWhatOnlyAnnealHasIsRefusedElsewhere(t *testing.T) {
	for _, set := range []string{"model.activation=relu2", "model.value_embeddings=all", "model.x0_skip=true"} {
		key, _, _ := strings.Cut(set, "=")
		p := problemsOf(t, minimal, set)
		if len(p) != 1 || p[0].Key != key || !strings.Contains(p[0].Message, "not for model.family = llama") || !strings.Contains(p[0].Try, "model.family = anneal") {
			t.Errorf("%s: %+v", set, p)
		}
		if _, err := parse([]byte(minimal), "run.yaml", []string{"model.family=anneal", set}); err != nil {
			t.Errorf("%s with the family: %v", set, err)
		}
	}
	if p := problemsOf(t, minimal, "model.family=aneal"); len(p) != 1 || p[0].Key != "model.family" || !strings.Contains(p[0].Try, "anneal") {
		t.Errorf("a family that is none: %+v", p)
	}
}
