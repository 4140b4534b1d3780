package config

import (
	"strings"
	"testing"
)

// A value that nothing reads, because what it belongs to is off, is refused; with that on, it is taken.
func TestValuesThatNothingReadsAreRefused(t *testing.T) {
	for _, c := range []struct{ key, value, on string }{
		{"schedule.decay_fraction", "0.5", "schedule.name=wsd"},
		{"schedule.decay_shape", "linear", "schedule.name=wsds"},
		{"train.batch_ramp_lr", "linear", "train.batch_ramp=4096 over 65536"},
		{"guard.window", "20", "guard.spike_z=6"},
		{"model.mup_base_dim", "64", "model.mup=true"},
		{"model.mup_base_ffn", "64", "model.mup=true"},
		{"model.mup_output_scale", "2", "model.mup=true"},
		{"optimizer.groups.head.lr_ratio", "2", "model.tie_embeddings=false"},
		{"optimizer.groups.head.weight_decay", "0.5", "model.tie_embeddings=false"},
		{"optimizer.cautious_decay", "true", "optimizer.weight_decay=0.1"},
	} {
		off := []string{"train.micro_batch=16", c.key + "=" + c.value}
		if c.key == "optimizer.cautious_decay" {
			off = append(off, "optimizer.weight_decay=0")
		}
		p := problemsOf(t, minimal, off...)
		if len(p) != 1 || p[0].Key != c.key || !strings.Contains(p[0].Message, "has no effect") || p[0].Try == "" ||
			p[0].At == "" {
			t.Errorf("%v: %+v", off, p)
		}
		if _, err := parse([]byte(minimal), "run.yaml", append(off, c.on)); err != nil {
			t.Errorf("%v %s: %v", off, c.on, err)
		}
	}
	for _, o := range []string{
		"schedule.name=constant schedule.final_ratio=0.3",
		"precision=fp16 loss_scale.dynamic=false loss_scale.interval=5",
		"precision=fp16 loss_scale.dynamic=false loss_scale.floor=5",
		"precision=fp8 fp8.history=5",
		"precision=fp8 fp8.margin=2",
		"optimizer.name=sgd optimizer.dampening=0.5",
		"optimizer.groups.bias.lr_ratio=3",
		"init.step=3",
		"init.tokenizer=any",
	} {
		if p := problemsOf(t, minimal, strings.Fields(o)...); len(p) != 1 ||
			!strings.Contains(p[0].Message, "has no effect") {
			t.Errorf("%s: %+v", o, p)
		}
	}
}

// What a run writes down of itself is taken again, though it names every key.
func TestResolvedConfigHasNothingIgnored(t *testing.T) {
	for _, name := range optimizerNames() {
		for _, more := range []string{
			"", "schedule.name=constant", "schedule.name=wsds", "model.tie_embeddings=false", "precision=fp16",
			"schedule.warmup=0%",
		} {
			if name == "schedulefree" && more == "schedule.name=wsds" {
				continue // refused
			}
			o := append([]string{"optimizer.name=" + name}, strings.Fields(more)...)
			c, err := parse([]byte(minimal), "run.yaml", o)
			if err != nil {
				t.Fatalf("%v: %v", o, err)
			}
			if _, err := parse([]byte(c.YAML()), "again.yaml", nil); err != nil {
				t.Errorf("%v: %v", o, err)
			}
		}
	}
}

func TestRunThatTrainsNothingIsRefused(t *testing.T) {
	frozen := []string{
		"optimizer.groups.matrix.lr_ratio=0", "optimizer.groups.embedding.lr_ratio=0",
		"optimizer.groups.norm.lr_ratio=0",
	}
	if p := problemsOf(t, minimal, append(frozen, "optimizer.cautious_decay=false")...); len(p) != 1 ||
		!strings.Contains(p[0].Message, "nothing would be trained") {
		t.Errorf("%+v", p)
	}
	if _, err := parse([]byte(minimal), "run.yaml", append(frozen, "model.tie_embeddings=false")); err != nil {
		t.Errorf("a head alone may be trained: %v", err)
	}
}

func TestRampsThatGrowNowhereAreRefused(t *testing.T) {
	for _, o := range []string{"train.batch_ramp=16384 over 65536", "train.length_warmup=256 over 10%"} {
		if p := problemsOf(t, minimal, o); len(p) != 1 || p[0].Try == "" {
			t.Errorf("%s: %+v", o, p)
		}
	}
}

// Who writes a warmup of 0 means none, not the percent that is derived where nothing is said.
func TestWarmupOfZeroIsNone(t *testing.T) {
	for _, text := range []string{"0", "0%", "0 tokens", "0 steps"} {
		c, err := parse([]byte(minimal), "run.yaml", []string{"schedule.warmup=" + text})
		if err != nil || c.Schedule.Warmup != 1 {
			t.Errorf("schedule.warmup=%s: %v, %v, want 1, which is no warmup", text, c.Schedule.Warmup, err)
		}
	}
}

// A key without a value is told the rule that would fill it, not the word for it.
func TestKeyWithoutAValueIsToldItsRule(t *testing.T) {
	for _, text := range []string{"null", "", ".inf", "[1]"} {
		if p := problemsOf(t, minimal+"optimizer:\n  lr: "+text+"\n"); len(p) != 1 ||
			!strings.HasPrefix(p[0].Try, "removing the key: lr = 0.001 for adamw") {
			t.Errorf("lr: %s: %+v", text, p)
		}
	}
}

// Whatever is wrong with a value, there is something to try; a name a letter off is told first.
func TestWrongValuesSayWhatToTry(t *testing.T) {
	for _, c := range []struct{ override, try string }{
		{"optimizer.lr=-1", "optimizer.lr = 0.001"},
		{"optimizer.lr=abc", "removing the key: lr = 0.001 for adamw"},
		{"train.z_loss=-1", "train.z_loss = 0"},
		{"train.steps=1.5", "train.steps = 1000"},
		{"optimizer.name=muno", "muon; there are adamw"},
		{"precision=BF16", "bf16; there are"},
		{"optimizer.name=shampoo", "adamw, adam8bit"},
	} {
		if p := problemsOf(t, minimal, c.override); len(p) != 1 || !strings.HasPrefix(p[0].Try, c.try) {
			t.Errorf("%s: %+v, want try %s", c.override, p, c.try)
		}
	}
}

// An edit of what a time scale was derived from, in a run's config.yaml, changes the decay, and another length of the
// run does not.
func TestADecayByItsTimeScaleFollowsAnEdit(t *testing.T) {
	was, err := parse([]byte(minimal), "run.yaml", []string{"train.steps=1000", "optimizer.lr=0.001",
		"optimizer.decay_timescale=0.5"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		old, new string
		decay    float64
	}{
		{"  decay_timescale: 0.5 ", "  decay_timescale: 5 ", 0.2},
		{"  decay_timescale: 0.5 ", "  decay_timescale: 0 ", 0.1},
		{"  lr: 0.001 ", "  lr: 0.002 ", 1},
		{"  steps: 1000 ", "  steps: 500 ", 2},
		{"  decay_timescale: 0.5 |  weight_decay: 2 ", "  decay_timescale: 0 |  weight_decay: 0.05 ", 0.05},
	} {
		text, edits := string(was.YAML()), strings.Split(c.new, "|")
		for i, old := range strings.Split(c.old, "|") {
			text = strings.Replace(text, old, edits[i], 1)
		}
		now, err := parse([]byte(text), "config.yaml", nil)
		if err != nil {
			t.Fatalf("%q: %v", c.new, err)
		}
		if o := now.Optimizer; o.WeightDecay != c.decay || o.Groups.Matrix.WeightDecay != c.decay {
			t.Errorf("%q: decays %v and %v, want %v", c.new, o.WeightDecay, o.Groups.Matrix.WeightDecay, c.decay)
		}
	}
}

// A run's config.yaml means the same with the line ends of Windows.
func TestLineEndsOfWindows(t *testing.T) {
	was, err := parse([]byte(minimal), "run.yaml", []string{"optimizer.decay_timescale=0.5"})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(was.YAML()), "\n", "\r\n")
	now, err := parse([]byte(text), "config.yaml", []string{"optimizer.decay_timescale=0.1"})
	if err != nil || now.Optimizer.WeightDecay != 5*was.Optimizer.WeightDecay {
		t.Errorf("the derived decay does not follow: %v", err)
	}
	cut, _, _ := strings.Cut(text, "schedule:")
	if _, err := parse([]byte(cut), "config.yaml", nil); err == nil || !strings.Contains(err.Error(), "truncated") {
		t.Errorf("a file that was cut off: %v", err)
	}
}

// The groups' decays in a run's config.yaml that follow optimizer.weight_decay also follow an edit of it, or of
// optimizer.decay_embeddings; those that were edited themselves stay, and so does a file that nobody edited.
func TestDecaysOfGroupsFollowAnEdit(t *testing.T) {
	was, err := parse([]byte(minimal), "run.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	bare, err := parse([]byte(minimal), "run.yaml", []string{"optimizer.decay_embeddings=false"})
	if err != nil {
		t.Fatal(err)
	}
	const group = "0.1            # derived: weight_decay = optimizer.weight_decay"
	for _, c := range []struct {
		was             *Config
		old, new        string
		times           int
		matrix, e, head float64
		said            string
	}{
		{was, "", "", 0, 0.1, 0.1, 0.1, ""},
		{bare, "", "", 0, 0.1, 0, 0.1, ""},
		{was, "  weight_decay: 0.1 ", "  weight_decay: 5 ", 1, 5, 5, 5, "optimizer.weight_decay was edited"},
		{was, "  decay_embeddings: true ", "  decay_embeddings: false ", 1, 0.1, 0, 0.1, "groups.embedding"},
		{bare, "  decay_embeddings: false ", "  decay_embeddings: true ", 1, 0.1, 0.1, 0.1, "groups.embedding"},
		{was, group, strings.Replace(group, "0.1", "0.3", 1), 1, 0.3, 0.1, 0.1, ""},
		{was, group, "0.3", 1, 0.3, 0.1, 0.1, ""},
		{was, "  decay_embeddings:", "  # decay_embeddings:", 1, 0.1, 0.1, 0.1, ""},
		{bare, "  decay_embeddings:", "  # decay_embeddings:", 1, 0.1, 0, 0.1, ""}, // of an early version
	} {
		text := strings.Replace(string(c.was.YAML()), c.old, c.new, c.times)
		if c.times > 0 && text == string(c.was.YAML()) {
			t.Fatalf("%q is not in the file", c.old)
		}
		now, err := parse([]byte(text), "config.yaml", nil)
		if err != nil {
			t.Fatalf("%q: %v", c.new, err)
		}
		g := now.Optimizer.Groups
		if g.Matrix.WeightDecay != c.matrix || g.Embedding.WeightDecay != c.e || g.Head.WeightDecay != c.head {
			t.Errorf("%q: decays %+v, want %v, %v and %v", c.new, g, c.matrix, c.e, c.head)
		}
		if said := strings.Join(now.Remarks(), "\n"); !strings.Contains(said, c.said) || c.said == "" && said != "" {
			t.Errorf("%q: remarks %q, want %q", c.new, said, c.said)
		}
	}
	text := strings.Replace(string(was.YAML()), "  weight_decay: 0.1 ", "  weight_decay: 5 ", 1)
	now, err := parse([]byte(text), "config.yaml", []string{"optimizer.groups.embedding.weight_decay=0.2"})
	if err != nil {
		t.Fatal(err)
	}
	if g := now.Optimizer.Groups; g.Matrix.WeightDecay != 5 || g.Embedding.WeightDecay != 0.2 {
		t.Errorf("edited and given: decays %+v", g)
	}
}

// What a run's config.yaml derived follows an override, as it does for a config that leaves it out; what it was given,
// and the lengths of the run, stay.
func TestDerivedValuesOfARunFollowAnOverride(t *testing.T) {
	was, err := parse([]byte(minimal), "run.yaml",
		[]string{"optimizer.groups.norm.weight_decay=0.3", "train.steps=2000"})
	if err != nil {
		t.Fatal(err)
	}
	load := func(overrides ...string) *Config {
		c, err := parse([]byte(was.YAML()), "config.yaml", overrides)
		if err != nil {
			t.Fatalf("%v: %v", overrides, err)
		}
		return c
	}
	g := load("optimizer.weight_decay=0.25").Optimizer.Groups
	if g.Matrix.WeightDecay != 0.25 || g.Embedding.WeightDecay != 0.25 || g.Norm.WeightDecay != 0.3 {
		t.Errorf("decays %+v, want 0.25 for what followed weight_decay and 0.3 for the norms, which had their own", g)
	}
	if o := load("optimizer.name=lion").Optimizer; o.LR != 2e-4 || o.Beta2 != 0.98 || o.Eps != 0 {
		t.Errorf("lion with lr %v, beta2 %v, eps %v: want its own", o.LR, o.Beta2, o.Eps)
	}
	if c := load("schedule.name=constant", "train.steps=500"); c.Schedule.FinalRatio != 0 || c.Schedule.Warmup != 20 {
		t.Errorf("final_ratio %v, warmup %d, want 0 and still 20", c.Schedule.FinalRatio, c.Schedule.Warmup)
	}
	for _, c := range []struct{ was, override string }{
		{"optimizer.decay_timescale=0.5", "optimizer.decay_timescale=0.1"},
		{"optimizer.decay_timescale=0.5", "optimizer.decay_timescale=0"},
		{"optimizer.decay_timescale=0.5", "optimizer.lr=1e-4"},
		{"optimizer.lr=1e-3", "optimizer.decay_timescale=0.1"},
		{"optimizer.weight_decay=0.2", "optimizer.lr=1e-4"},
		{"schedule.name=wsd", "schedule.decay_shape=exponential"},
		{"init.from=base model.lora_rank=8", "model.lora_rank=32"},
		{"model.family=qwen3_moe model.experts=8 model.experts_per_token=2", "model.experts_per_token=4"},
		{"model.mup=true model.head_dim=32", "model.head_dim=64"},
		{"seed=2", "model.family=anneal"},
		{"model.family=anneal", "model.family=olmo2"},
		{"optimizer.name=schedulefree", "optimizer.name=adamw"},
		{"seed=2", "optimizer.name=schedulefree"},
		{"schedule.name=wsd", "optimizer.name=muon"},
		{"schedule.warmup=20 schedule.horizon=90% schedule.final_ratio=0.1", "train.steps=500"},
		{"train.steps=2000 schedule.name=cyclic schedule.branches=5,10", "seed=2"},
	} {
		first := strings.Fields(c.was)
		was, err := parse([]byte(minimal), "run.yaml", first)
		if err != nil {
			t.Fatal(err)
		}
		now, err := parse(was.YAML(), "config.yaml", []string{c.override})
		if err != nil {
			t.Errorf("%s, then %s: %v", c.was, c.override, err)
			continue
		}
		fresh, err := parse([]byte(minimal), "run.yaml", append(first, c.override))
		if err != nil {
			t.Fatal(err)
		}
		if d := fresh.Differences(now); len(d) > 0 {
			t.Errorf("%s, then %s: from the start it would be %v", c.was, c.override, d)
		}
	}
	if got := string(load().YAML()); !strings.Contains(got, "# derived: weight_decay = optimizer.weight_decay") {
		t.Error("a resolved config that is read and written again says no more what was derived")
	}
}
