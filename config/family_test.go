package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"anneal/model"
)

// One line makes the recipe; what is said of a key goes before it; a resolved config says the same again, and follows
// another family.
func TestAFamilyIsOneLine(t *testing.T) {
	get := func(c *Config, name string) string { return c.value(allKeys[keyIndex[name]]) }
	c, err := parse([]byte(minimal+"model: {family: anneal, x0_skip: false}\n"), "run.yaml",
		[]string{"model.logit_softcap=0"})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range families[slices.Index(familyNames(), "anneal")].values {
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
	again, err := parse(c.YAML(), "again.yaml", nil)
	if err != nil || string(again.YAML()) == "" || again.Model.Differences(c.Model) != nil {
		t.Errorf("read again: %v\n%+v, want\n%+v", err, again.Model, c.Model)
	}
	llama, err := parse(c.YAML(), "again.yaml", []string{"model.family=llama"})
	if err != nil {
		t.Fatal(err)
	}
	if m := llama.Model; m.QKNorm || m.Activation != "swiglu" || m.FFN != 1024 || m.ZeroInit != "none" {
		t.Errorf("as a llama: %+v", m)
	}
}

// Gemma 2 in one line.
func TestGemma2IsOneLine(t *testing.T) {
	c, err := parse([]byte(minimal+"model: {family: gemma2, context: 512, layers: 4}\n"), "run.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := c.Model
	if m.Attention.String() != "window:128,full" || m.RopeTheta != 1e4 || m.QKNorm || m.AttentionSoftcap != 50 ||
		m.LogitSoftcap != 30 || m.Activation != "geglu" || m.NormEps != 1e-6 {
		t.Errorf("gemma2 is %+v", m)
	}
	again, err := parse(c.YAML(), "again.yaml", nil)
	if err != nil || again.Model.Differences(m) != nil {
		t.Errorf("read again: %v\n%+v, want\n%+v", err, again.Model, m)
	}
}

// Gemma 3 in one line.
func TestGemma3IsOneLine(t *testing.T) {
	c, err := parse([]byte(minimal+"model: {family: gemma3, context: 512}\n"), "run.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := c.Model
	if m.Attention.String() != "window:128,window:128,window:128,window:128,window:128,full" || m.RopeTheta != 1e6 ||
		m.RopeThetaLocal != 1e4 ||
		m.NormEps != 1e-6 || !m.QKNorm || m.FFN != ffnOfLlama(m.Dim) {
		t.Errorf("gemma3 is %+v", m)
	}
	again, err := parse(c.YAML(), "again.yaml", nil)
	if err != nil || again.Model.Differences(m) != nil {
		t.Errorf("read again: %v\n%+v, want\n%+v", err, again.Model, m)
	}
	for set, says := range map[string]string{
		"model.activation=swiglu":   "not work with model.family = gemma3",
		"model.mup=true":            "no rule for model.family = gemma3",
		"model.rope_theta_local=-1": "lies outside",
		"model.score_dim=-1":        "too small",
		"model.family=llama model.rope_theta_local=5e3 model.attention=full": "no effect without a layer of " +
			"model.attention = window",
	} {
		if _, err := parse([]byte(minimal+"model: {family: gemma3, context: 512}\n"), "run.yaml",
			strings.Fields(set)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error that says %q", set, err, says)
		}
	}
}

// Qwen3-MoE in one line: the experts of a token are as wide as the feed-forward layer of a Llama.
func TestQwen3MoEIsOneLine(t *testing.T) {
	const text = minimal + "model: {family: qwen3_moe}\n"
	c, err := parse([]byte(text), "run.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	m := c.Model
	if m.Experts != 8 || m.ExpertsPerToken != 2 || m.ExpertFFN != 512 || m.FFN != 1024 || !m.NormaliseExperts ||
		m.RouterAuxLoss != 0.001 || !m.QKNorm {
		t.Errorf("qwen3_moe is %+v", m)
	}
	again, err := parse(c.YAML(), "again.yaml", nil)
	if err != nil || again.Model.Differences(m) != nil {
		t.Errorf("read again: %v\n%+v, want\n%+v", err, again.Model, m)
	}
	llama, err := parse(c.YAML(), "again.yaml", []string{"model.family=llama"})
	if err != nil || llama.Model.Experts != 0 || llama.Model.ExpertFFN != 0 {
		t.Errorf("as a llama: %v, %+v", err, llama.Model)
	}
	for set, says := range map[string]string{
		"model.experts_per_token=9":                      "too large",
		"model.experts=0":                                "too small",
		"model.router_aux_loss=-1":                       "lies outside",
		"model.mup=true":                                 "no rule for model.family = qwen3_moe",
		"model.family=llama model.experts=4":             "does not work with model.family = llama",
		"model.family=gpt2 model.normalise_experts=true": "does not work with model.family = gpt2",
	} {
		if _, err := parse([]byte(text), "run.yaml", strings.Fields(set)); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error that says %q", set, err, says)
		}
	}
}

// GPT-2 in one line: its defaults come with their rule, and what it has not is refused, or named as of no effect.
func TestGPT2IsOneLine(t *testing.T) {
	c, err := parse([]byte(minimal+"model: {family: gpt2, dim: 320, heads: 5}\n"), "run.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	if m := c.Model; m.FFN != 1280 || m.Positions.String() != "learned" || m.Activation != "gelu" || !m.TieEmbeddings ||
		m.NormEps != 1e-5 || m.KVHeads != 5 {
		t.Errorf("gpt2 is %+v", m)
	}
	if rule := c.Origin("model.positions").Rule; rule != "positions of gpt2" {
		t.Errorf("learned positions come from %q", rule)
	}
	again, err := parse(c.YAML(), "again.yaml", []string{"model.family=llama"})
	if err != nil {
		t.Fatal(err)
	}
	if m := again.Model; m.FFN != ffnOfLlama(320) || m.Positions.String() != "rope" || m.Activation != "swiglu" {
		t.Errorf("as a llama: %+v", m)
	}
	for set, says := range map[string]string{
		"model.rope_theta=5e5":                      "no effect with model.positions = learned",
		"model.activation=swiglu":                   "not work with model.family = gpt2",
		"model.value_embeddings=all":                "not work with model.family = gpt2",
		"model.positions=learned,rope":              "do not mix",
		"model.kv_heads=3":                          "does not divide model.heads",
		"optimizer.groups.head.lr_ratio=0.5":        "the head is the embedding table",
		"optimizer.groups.bias.lr_ratio=-1":         "lies outside",
		"model.positions=rope model.rope_theta=-10": "lies outside",
	} {
		key, _, _ := strings.Cut(set[strings.LastIndexByte(set, ' ')+1:], "=")
		p := problemsOf(t, minimal+"model: {family: gpt2, dim: 320, heads: 5}\n", strings.Fields(set)...)
		if len(p) != 1 || p[0].Key != key || !strings.Contains(p[0].Message, says) {
			t.Errorf("%s: %+v, want %q", set, p, says)
		}
	}
	for _, fine := range []string{
		"model.kv_heads=1", "model.positions=rope", "optimizer.groups.bias.weight_decay=0.1", "model.qk_norm=true",
		"model.mup=true",
	} {
		if _, err := parse([]byte(minimal+"model: {family: gpt2, dim: 320, heads: 5}\n"), "run.yaml",
			[]string{fine}); err != nil {
			t.Errorf("%s: %v", fine, err)
		}
	}
	if p := problemsOf(t, minimal, "model.activation=gelu"); len(p) != 1 ||
		!strings.Contains(p[0].Try, "model.family = gpt2") {
		t.Errorf("a llama with GELU: %+v", p)
	}
	if p := problemsOf(t, minimal, "optimizer.groups.bias.weight_decay=0.1"); len(p) != 1 ||
		!strings.Contains(p[0].Message, "llama, which has no biases") {
		t.Errorf("a llama whose biases decay: %+v", p)
	}
}

func ffnOfLlama(dim int) int { return derivedFFN(&model.Config{Activation: "swiglu"}, dim) }

func TestWhatOnlyAnnealHasIsRefusedElsewhere(t *testing.T) {
	for _, set := range []string{"model.activation=relu2", "model.value_embeddings=all", "model.x0_skip=true",
		"model.bigram=64", "model.smear=true"} {
		key, _, _ := strings.Cut(set, "=")
		p := problemsOf(t, minimal, set)
		if len(p) != 1 || p[0].Key != key || !strings.Contains(p[0].Message, "not work with model.family = llama") ||
			!strings.Contains(p[0].Try, "model.family = anneal") {
			t.Errorf("%s: %+v", set, p)
		}
		if _, err := parse([]byte(minimal), "run.yaml", []string{"model.family=anneal", set}); err != nil {
			t.Errorf("%s with the family: %v", set, err)
		}
	}
	if p := problemsOf(t, minimal, "model.family=aneal"); len(p) != 1 || p[0].Key != "model.family" ||
		!strings.Contains(p[0].Try, "anneal") {
		t.Errorf("a family that is none: %+v", p)
	}
}

// Three layers in four look at a quarter of the context, where there is enough of both; it follows the context.
func TestAnnealCyclesItsWindows(t *testing.T) {
	for _, c := range []struct {
		context, layers int
		want            string
	}{
		{1024, 6, "window:256,window:256,window:256,full"}, {200, 4, "window:64,window:64,window:64,full"},
		{1024, 3, "full"}, {64, 8, "full"},
	} {
		cfg, err := parse([]byte(minimal), "run.yaml", []string{
			"model.family=anneal", "train.batch_tokens=102400", "train.micro_batch=1",
			fmt.Sprint("model.context=", c.context), fmt.Sprint("model.layers=", c.layers),
		})
		if err != nil {
			t.Fatal(err)
		}
		if cfg.Model.Attention.String() != c.want {
			t.Errorf("%d layers of %d tokens: %s, want %s", c.layers, c.context, cfg.Model.Attention, c.want)
		}
		longer, err := parse(cfg.YAML(), "again.yaml", []string{"model.context=2048", "model.layers=4"})
		if err != nil {
			t.Fatal(err)
		}
		if want := "window:512,window:512,window:512,full"; longer.Model.Attention.String() != want {
			t.Errorf("continued with 2048 tokens: %s, want %s", longer.Model.Attention, want)
		}
	}
}

// What OLMo 2's norm over all heads does not work with is refused by name.
func TestOlmo2RefusesWhatItsNormsCannot(t *testing.T) {
	const text = minimal + "model: {family: olmo2}\n"
	c, err := parse([]byte(text), "run.yaml", nil)
	if err != nil || !c.Model.QKNorm || c.Model.RopeTheta != 5e5 || c.Model.NormEps != 1e-6 {
		t.Fatalf("%v: %+v", err, c.Model)
	}
	for set, says := range map[string]string{
		"model.kv_heads=2":                    "one size",
		"device=cuda":                         "room for a head",
		"parallel.ranks=2 parallel.tensor=2":  "one norm is over all heads",
		"model.kv_lora_rank=8":                "does not work with model.family",
		"model.mup=true":                      "no rule for model.family = olmo2",
		"model.qk_norm=false model.ffn=99999": "",
	} {
		_, err := parse([]byte(text), "run.yaml", strings.Fields(set))
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v", set, err)
		}
	}
}
