package run

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/tokenizer"
	"anneal/train"
	"anneal/train/traintest"
)

// trainedRun makes a run of a few steps on data.
func trainedRun(t *testing.T, data string, overrides ...string) (dir string, r *Result) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	return dir, mustRun(t, Options{Config: smallConfig(t, data, overrides...), Dir: dir})
}

// initConfig is a small run that says nothing of its model and starts from weights.
func initConfig(t *testing.T, from, data string, overrides ...string) *config.Config {
	t.Helper()
	cfg, err := loadInit(from, data, overrides...)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func loadInit(from, data string, overrides ...string) (*config.Config, error) {
	return LoadConfig(config.Sources{Overrides: append([]string{
		"init.from=" + from, "data.path=" + data, "train.steps=6", "schedule.warmup=2", "train.batch_tokens=256",
		"train.micro_batch=4", "train.eval_every=0", "train.eval_tokens=512", "checkpoint.every=2",
		"checkpoint.keep=10",
	}, overrides...)})
}

// startedFrom returns a trainer with the weights that a configuration starts from.
func startedFrom(t *testing.T, cfg *config.Config) *train.Trainer {
	t.Helper()
	trial, err := NewTrial(cfg, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(trial.Close)
	return trial.trainer
}

// Whatever a model is made of and stored in, a run that starts from it has its shape and its weights, bit for bit, and
// a new optimizer.
func TestARunStartsFromTheWeightsOfAnother(t *testing.T) {
	data := traintest.Data(t)
	for name, set := range map[string][]string{
		"llama": nil,
		"untied": {"model.tie_embeddings=false", "model.qk_norm=true", "model.kv_heads=1",
			"model.rope_layout=interleaved"},
		"gpt2":        {"model.family=gpt2"},
		"anneal":      {"model.family=anneal", "model.layers=4"},
		"mup":         {"model.mup=true", "model.mup_base_dim=16", "model.mup_input_scale=2"},
		"alibi":       {"model.positions=[alibi,rope]", "model.attention=[window:8,full]"},
		"yarn":        {"model.rope_scaling=yarn:2"},
		"bf16_sr":     {"precision=bf16_sr"},
		"fp64":        {"precision=fp64"},
		"another LR":  {"optimizer.name=lion", "average.ema=0.9"},
		"linear":      {"model.attention=linear:gated"},
		"soft-capped": {"model.logit_softcap=20", "model.ffn=48", "model.rope_theta=500", "model.norm_eps=1e-6"},
	} {
		dir, r := trainedRun(t, data, set...)
		was := mustLoad(t, dir)
		cfg := initConfig(t, dir, data, "precision="+was.Precision)
		tr := startedFrom(t, cfg)
		if got := hashes(tr)[0]; got != r.WeightsHash || cfg.Init.Weights != r.WeightsHash || cfg.Init.Step != 4 {
			t.Errorf("%s: starts with the weights %.12s of step %d, noted as %.12s; want %.12s of step 4",
				name, got, cfg.Init.Step, cfg.Init.Weights, r.WeightsHash)
		}
		if m, want := cfg.Model, was.Model; m.RopeScaling != want.RopeScaling ||
			m.RopeOriginalContext != want.RopeOriginalContext {
			t.Errorf("%s: positions are %+v from %d on, want %+v from %d on",
				name, m.RopeScaling, m.RopeOriginalContext, want.RopeScaling, want.RopeOriginalContext)
		}
		if tr.Position() != (train.Position{}) {
			t.Errorf("%s: begins at %+v", name, tr.Position())
		}
		for _, remark := range cfg.Remarks() {
			t.Errorf("%s: nothing is changed, and yet it is remarked: %s", name, remark)
		}
	}
}

// The weights may be stored in a wider or narrower type than the run's; the average of the weights begins with them.
func TestWeightsAreConvertedToThePrecisionOfTheRun(t *testing.T) {
	data := traintest.Data(t)
	dir, _ := trainedRun(t, data)
	want := openedWeights(t, dir)
	for _, precision := range []string{"fp64", "bf16_sr"} {
		tr := startedFrom(t, initConfig(t, dir, data, "precision="+precision, "average.ema=0.9"))
		n := 0
		average := slices.DeleteFunc(tr.Tensors(), func(x train.Tensor) bool { return x.Kind != train.OfAverage })
		for i, p := range tr.Model().Params() {
			for e := range p.Value.Len() {
				got, tolerance := p.Value.Float64(e), 0.0
				if precision == "bf16_sr" {
					tolerance = 0x1p-8 * max(want[n], -want[n])
				}
				if d := got - want[n]; d > tolerance || -d > tolerance {
					t.Fatalf("%s: element %d of %s is %v, want %v", precision, e, p.Name, got, want[n])
				}
				if mean := average[i].Value.Float64(e); mean != got {
					t.Fatalf("%s: the average begins with %v, the weights with %v", precision, mean, got)
				}
				n++
			}
		}
	}
}

// A key of the model that disagrees with the weights is refused with both values; what may differ is said.
func TestTheShapeIsThatOfTheWeights(t *testing.T) {
	data := traintest.Data(t)
	rope, _ := trainedRun(t, data)
	learned, _ := trainedRun(t, data, "model.family=gpt2")
	scaled, _ := trainedRun(t, data, "model.rope_scaling=yarn:2") // 16 tokens at first, 32 then
	experts, _ := trainedRun(t, data, "model.family=qwen3_moe", "model.experts=4", "model.experts_per_token=2")
	for _, c := range []struct {
		from    string
		set     []string
		refused string
		remark  string
	}{
		{rope, []string{"model.layers=3"}, "model.layers = 3, but the weights of " + rope + " have 2", ""},
		{rope, []string{"model.family=gpt2"}, "model.family = gpt2, but", ""},
		{rope, []string{"model.mup=true"}, "model.mup = true, but", ""},
		{rope, []string{"model.rope_theta=500"}, "model.rope_theta = 500, but", ""},
		{rope, []string{"model.layers=2", "model.dim=32"}, "", ""},
		{rope, []string{"model.context=64"}, "", "model.rope_scaling = yarn:2 stretches RoPE"},
		{rope, []string{"model.context=16"}, "", ""},
		{rope, []string{"model.context=64", "model.rope_scaling=yarn:2"}, "", "have none"},
		{learned, []string{"model.context=16"}, "", ""},
		{learned, []string{"model.context=64"}, "have learned 32 positions", ""},
		{learned, []string{"model.dropout=0.1"}, "", ""},
		{scaled, []string{"model.context=64"}, "", "later positions are new"},
		{scaled, []string{"model.context=64", "model.rope_scaling=yarn:4"}, "", "have yarn:2"},
		{experts, []string{"model.router_aux_loss=0.02", "model.router_z_loss=0.01"}, "", ""},
		{rope, []string{"init.step=4"}, "", ""},
		{rope, []string{"init.step=7"}, "no checkpoint of step 7", ""},
		{filepath.Join("..", "hf", "testdata", "llama"), []string{"init.step=7"}, "is not a run", ""},
		{t.TempDir(), nil, "is neither a run", ""},
		{filepath.Join(t.TempDir(), "nothing"), nil, "does not exist", ""},
	} {
		cfg, err := loadInit(c.from, data, c.set...)
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%v: error %v does not say %q", c.set, err, c.refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v: %v", c.set, err)
			continue
		}
		if text := strings.Join(cfg.Remarks(), "\n"); !strings.Contains(text, c.remark) ||
			c.remark == "" && text != "" {
			t.Errorf("%v: remarks %q, want %q", c.set, text, c.remark)
		}
		if original := cfg.Model.RopeOriginalContext; cfg.Model.RopeScaling.Kind != "" &&
			original != map[string]int{rope: 32, scaled: 16}[c.from] {
			t.Errorf("%v: the original context is %d", c.set, original)
		}
		startedFrom(t, cfg)
	}
	// A configuration that was put together without the weights is checked against them before any is read.
	cfg := with(t, data, "model.layers=3", "init.from="+rope)
	if _, err := Run(context.Background(), Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "run")}); err == nil ||
		!strings.Contains(err.Error(), "model.layers = 3, but") {
		t.Errorf("another shape, given behind the back of LoadConfig: %v", err)
	}
}

// A run from weights has them in its checkpoint of step 0 before it is a run. It says where they are from, is resumed
// without their directory, bit for bit, and never goes on from random ones.
func TestARunFromWeightsIsResumedWithoutTheirDirectory(t *testing.T) {
	data := traintest.Data(t)
	from, source := trainedRun(t, data)
	whole := filepath.Join(t.TempDir(), "whole")
	want := mustRun(t, Options{Config: initConfig(t, from, data), Dir: whole})
	text, err := os.ReadFile(filepath.Join(whole, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"  from: " + from, "  weights: ", "# derived: the newest checkpoint of " + from,
		"# from the weights of " + from,
	} {
		if !strings.Contains(string(text), line) {
			t.Errorf("config.yaml does not say %q", line)
		}
	}
	if want.Init.From != from || want.Init.Step != 4 || want.Init.Weights != source.WeightsHash {
		t.Errorf("the result says %+v", want.Init)
	}
	cfg := initConfig(t, from, data)
	s, err := newSession(cfg, Options{Dir: filepath.Join(t.TempDir(), "killed")})
	if err == nil {
		err = errors.Join(startFrom(s.trainer, cfg, s.corpus, s.world), s.create(true))
		s.close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if weights, _, info, err := checkpoint.Hash(s.dir.checkpoints()); weights != source.WeightsHash ||
		info.Step != 0 || err != nil {
		t.Errorf("before its first step the run has the weights %.12s of step %d, %v; want %.12s",
			weights, info.Step, err, source.WeightsHash)
	}
	if err := os.RemoveAll(from); err != nil {
		t.Fatal(err)
	}
	got, err := Resume(context.Background(), Options{Dir: s.Dir})
	if err != nil {
		t.Fatal(err)
	}
	sameRun(t, "killed before its first step and resumed", got, want)
	if again := resumedAt(t, whole, 2); again.WeightsHash != want.WeightsHash {
		t.Error("resumed at step 2 it is another run")
	}
	for _, step := range []string{"00", "02", "04", "06"} {
		if err := os.RemoveAll(filepath.Join(s.dir.checkpoints(), "step-000000"+step)); err != nil {
			t.Fatal(err)
		}
	}
	_, resumed := Resume(context.Background(), Options{Dir: s.Dir})
	_, rewound := Rewind(s.Dir, RewindOptions{To: 0})
	for what, err := range map[string]error{"resumed": resumed, "taken back to its beginning": rewound} {
		if !errors.Is(err, checkpoint.ErrNone) || !strings.Contains(err.Error(), "start") ||
			!strings.Contains(err.Error(), "--out RUN") {
			t.Errorf("without a checkpoint it is %s: %v", what, err)
		}
	}
	if _, err := BranchConfig(whole, []string{"init.from=" + whole}); err == nil ||
		!strings.Contains(err.Error(), "init.from") {
		t.Errorf("a branch with other initial weights: %v", err)
	}
}

// killInitConfig is killConfig for a run that starts from weights. It is short, so that a kill often meets its
// beginning.
func killInitConfig(data, from string) *config.Config {
	cfg := killConfig(data)
	cfg.Train.Steps, cfg.Checkpoint.Every, cfg.Init.From = 40, 5, from
	return cfg
}

// Killed with SIGKILL as soon as it is a run, and at random instants around that, a run from weights has a checkpoint
// to go on from; it ends with the bits of one never killed.
func TestARunFromWeightsSurvivesAKillAtItsBeginning(t *testing.T) {
	data := traintest.Data(t)
	from, _ := trainedRun(t, data)
	want := mustRun(t, Options{Config: killInitConfig(data, from), Dir: filepath.Join(t.TempDir(), "whole")})
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	kills, begun := 15, 0
	if testing.Short() {
		kills = 5
	}
	for n := 0; kills > 0; n++ {
		dir := filepath.Join(t.TempDir(), fmt.Sprint("run", n))
		until := []string{"config.yaml", "checkpoints"}[n%2]
		for done := false; !done; until = "checkpoints" {
			// 1 to 512 ms: what a machine takes for the beginning varies that much
			delay := time.Millisecond << rng.IntN(10)
			switch {
			case kills == 0:
				delay = time.Minute
			case until == "config.yaml":
				delay = 0
			}
			if done = runChild(t, dir, data, from, until, delay); done {
				break
			}
			kills--
			if _, err := checkpoint.LoadState(filepath.Join(dir, "checkpoints"), nil); Exists(dir) && err != nil {
				t.Fatalf("seed %d: killed, it is a run without a checkpoint: %v", seed, err)
			}
			if Exists(dir) {
				begun++
			}
		}
		if weights, _, info, err := checkpoint.Hash(filepath.Join(dir, "checkpoints")); weights != want.WeightsHash ||
			info.Step != 40 {
			t.Fatalf("seed %d: ends at step %d with %.12s, %v; never killed with %.12s",
				seed, info.Step, weights, err, want.WeightsHash)
		}
	}
	t.Logf("%d kills met a run that had begun", begun)
}

// A run's own config.yaml makes the run again, from the same checkpoint, and only from the same weights.
func TestAConfigWithInitialWeightsCanBeUsedAgain(t *testing.T) {
	data := traintest.Data(t)
	from, _ := trainedRun(t, data, "checkpoint.every=2")
	first := filepath.Join(t.TempDir(), "first")
	want := mustRun(t, Options{Config: initConfig(t, from, data, "init.step=2"), Dir: first})
	load := func(overrides ...string) *config.Config {
		cfg, err := LoadConfig(config.Sources{File: filepath.Join(first, "config.yaml"), Overrides: overrides})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	if got := mustRun(t, Options{Config: load(), Dir: filepath.Join(t.TempDir(), "again")}); got.WeightsHash !=
		want.WeightsHash {
		t.Errorf("made again it ends with %.12s, want %.12s", got.WeightsHash, want.WeightsHash)
	}
	if cfg := load("init.from=" + first); cfg.Init.Weights != "" || cfg.Init.Step != 2 {
		t.Errorf("with other weights it expects %+v", cfg.Init)
	}
	_, err := NewTrial(load("init.step=4"), nil, nil)
	if err == nil || !strings.Contains(err.Error(), "init.weights = ") {
		t.Errorf("weights of another step: %v", err)
	}
}

// A run on a device with memory of its own starts from the same weights.
func TestARunFromWeightsOnADeviceApart(t *testing.T) {
	farDevice(t)
	data := traintest.Data(t)
	from, _ := trainedRun(t, data)
	grown := traintest.DataWith(t, 0.1, tokenizer.TrainOptions{VocabSize: 340})
	for _, d := range []string{data, grown} {
		cfg := func(set ...string) *config.Config { return initConfig(t, from, d, append(set, "average.ema=0.9")...) }
		want := mustRun(t, Options{Config: cfg(), Dir: filepath.Join(t.TempDir(), "cpu")})
		got := mustRun(t, Options{Config: cfg("device=cuda"), Dir: filepath.Join(t.TempDir(), "far")})
		sameRun(t, "from weights", got, want)
	}
}
