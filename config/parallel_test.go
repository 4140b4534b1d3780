package config

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestRanksThatCannotWorkAreRefused(t *testing.T) {
	for _, c := range []struct{ key, set, says string }{
		{"parallel.ranks", "parallel.ranks=0", "too small"},
		{"parallel.ranks", "parallel.ranks=-2", "too small"},
		{"parallel.zero", "parallel.zero=4", "not a stage of ZeRO"},
		{"parallel.zero", "parallel.zero=-1", "not a stage of ZeRO"},
		{"parallel.timeout", "parallel.timeout=0", "outside"},
		{"parallel.timeout", "parallel.timeout=-1m", "outside"},
		{"parallel.wire", "parallel.wire=fp16", "not known"},
		{"parallel.sum_block", "parallel.sum_block=0", "too small"},
		{"parallel.outer.groups", "parallel.outer.groups=-1", "too small"},
		{"parallel.outer.groups", "parallel.outer.groups=5", "a step has 4 micro-batches: the groups"},
		{"parallel.outer.groups", "parallel.outer.groups=2 train.batch_ramp=4096 over 65536", "1 micro-batch:"},
		{"parallel.outer.every", "parallel.outer.groups=2 parallel.outer.every=0", "too small"},
		{"parallel.outer.lr", "parallel.outer.groups=2 parallel.outer.lr=0", "outside"},
		{"parallel.outer.momentum", "parallel.outer.groups=2 parallel.outer.momentum=1", "outside"},
		{"eval.tasks", "parallel.outer.groups=2 eval.tasks=tasks", "groups have weights of their own"},
		{"samples.every", "parallel.outer.groups=2 samples.every=10", "groups have weights of their own"},
		{"train.noise_scale_every", "train.noise_scale_every=10 parallel.sum_block=4", "a single block"},
		{"train.noise_scale_every", "train.noise_scale_every=10 parallel.outer.groups=2 parallel.sum_block=2",
			"a single block"},
		{"train.noise_scale_every", "train.noise_scale_every=10 parallel.pipeline=2 model.tie_embeddings=true",
			"a tied table"},
		{"parallel.outer.momentum", "parallel.outer.momentum=0.5", "has no effect without parallel.outer.groups"},
	} {
		set := splitSettings(c.set)
		p := problemsOf(t, minimal, set...)
		if len(p) != 1 || p[0].Key != c.key || !strings.Contains(p[0].Message, c.says) || p[0].Try == "" ||
			!strings.Contains(p[0].At, c.key) {
			t.Errorf("%v: want one problem of %s that says %q:\n%+v", set, c.key, c.says, p)
		}
	}
}

// splitSettings cuts a text where a blank is followed by key=.
func splitSettings(text string) (list []string) {
	for word := range strings.FieldsSeq(text) {
		if len(list) > 0 && !strings.Contains(word, "=") {
			list[len(list)-1] += " " + word
			continue
		}
		list = append(list, word)
	}
	return list
}

// The stages, formats and techniques work together: only ranges are checked.
func TestRanksWorkWithEveryTechnique(t *testing.T) {
	for _, set := range []string{
		"parallel.ranks=64 parallel.zero=3", "parallel.zero=2", "parallel.timeout=90s", "parallel.wire=bf16",
		"parallel.wire=int8 parallel.sum_block=2", "parallel.outer.groups=1",
		"parallel.outer.groups=4 parallel.outer.every=500 parallel.outer.lr=1 parallel.outer.momentum=0",
		"parallel.ranks=2 guard.replay_every=10 train.noise_scale_every=10 average.ema=0.9 optimizer.name=muon",
		"parallel.ranks=2 precision=fp8 optimizer.name=sophia",
		"parallel.pipeline=2 train.noise_scale_every=10 model.tie_embeddings=false",
	} {
		c, err := parse([]byte(minimal), "run.yaml", splitSettings(set))
		if err != nil {
			t.Errorf("%s: %v", set, err)
			continue
		}
		if _, err := parse(c.YAML(), "again.yaml", nil); err != nil {
			t.Errorf("%s: written and read again: %v", set, err)
		}
	}
}

// A step of 4 micro-batches gives work to 4 ranks; in blocks of 2 to 2 ranks; the others are told of.
func TestIdleRanksAreRemarked(t *testing.T) {
	for _, c := range []struct{ set, says string }{
		{"parallel.ranks=4", ""},
		{"parallel.ranks=5", "4 micro-batches: 1 rank computes nothing"},
		{"parallel.ranks=2 parallel.sum_block=2", ""},
		{"parallel.pipeline=2 parallel.ranks=8", ""},
		{"parallel.pipeline=2 parallel.ranks=10", "2 ranks compute nothing"},
		{"parallel.ranks=4 parallel.sum_block=2", "in blocks of 2: 2 ranks compute nothing"},
		{"parallel.ranks=4 parallel.sum_block=2 parallel.outer.groups=2", "2 ranks compute nothing"},
		{"parallel.ranks=9 parallel.outer.groups=2", "5 ranks compute nothing"},
	} {
		cfg, err := parse([]byte(minimal), "run.yaml", splitSettings(c.set))
		if err != nil {
			t.Fatal(err)
		}
		says := func(s string) bool { return strings.Contains(s, c.says) }
		none, said := c.says == "", cfg.Remarks()
		if none != (len(said) == 0) || !none && !slices.ContainsFunc(said, says) {
			t.Errorf("%s: remarks %q, want %q", c.set, cfg.Remarks(), c.says)
		}
	}
}

// A run that was saved before there were ranks is one of a single rank.
func TestSavedConfigWithoutRanksHasOne(t *testing.T) {
	var c Config
	if err := json.Unmarshal([]byte(`{"Data":{"Path":"/d"}}`), &c); err != nil {
		t.Fatal(err)
	}
	if c.Parallel != Default().Parallel {
		t.Errorf("%+v", c.Parallel)
	}
}

// The default number of ranks in a run's file follows a mesh, even if the file was written again since; a given number
// does not.
func TestDefaultRanksFollowAMesh(t *testing.T) {
	c, err := parse([]byte(minimal), "run.yaml", nil)
	for range 2 {
		if err != nil {
			t.Fatal(err)
		}
		c, err = parse(c.YAML(), "config.yaml", []string{"parallel.zero=1"})
	}
	text := c.YAML()
	mesh := []string{"parallel.tensor=2", "parallel.pipeline=2"}
	if c, err = parse(text, "config.yaml", mesh); err != nil || c.Parallel.Ranks != 4 {
		t.Errorf("%v: %+v, %v; want 4 ranks", mesh, c, err)
	}
	edited := strings.Replace(string(text), "ranks: 1", "ranks: 3", 1)
	if edited == string(text) {
		t.Fatal("the number of ranks is not where it was")
	}
	for text, set := range map[string][]string{edited: mesh, string(text): append(mesh, "parallel.ranks=1")} {
		if p := problemsOf(t, text, set...); len(p) != 1 || p[0].Key != "parallel.ranks" {
			t.Errorf("%v: %+v, want a refusal of parallel.ranks", set, p)
		}
	}
}

// Advice is a value that works: no micro-batch is below one sequence, and no segment below one layer.
func TestAdviceCanBeFollowed(t *testing.T) {
	for _, c := range []struct{ set, try string }{
		{"train.noise_scale_every=1 train.micro_batch=4 train.batch_tokens=512 model.context=128",
			"train.micro_batch = 2 or less"},
		{"train.noise_scale_every=1 train.micro_batch=2 train.batch_tokens=256 model.context=128",
			"train.micro_batch = 1"},
		{"train.noise_scale_every=1 train.micro_batch=1 train.batch_tokens=128 model.context=128",
			"a larger train.batch_tokens"},
		{"memory.recompute=every:2 model.layers=1", "memory.recompute = every_layer"},
		{"memory.recompute=every:2 model.layers=2", "memory.recompute = every_layer"},
		{"memory.recompute=every:4 model.layers=3",
			"memory.recompute = every_layer, or every:N with N below model.layers = 3"},
	} {
		if p := problemsOf(t, minimal, splitSettings(c.set)...); len(p) != 1 || p[0].Try != c.try {
			t.Errorf("%s: %+v, want the advice %q", c.set, p, c.try)
		}
	}
}
