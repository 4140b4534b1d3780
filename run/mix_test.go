package run

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/dataset"
	"anneal/tokenizer"
	"anneal/train"
	"anneal/train/traintest"
)

// mixConfig is a run over two data sets whose weights jump, and move along a line.
func mixConfig(a, b string) *config.Config {
	cfg := traintest.Config("")
	traintest.Override(cfg, "data.mix=a="+a+", b="+b, "data.weights=a=3 b=1, b=1 from 30%, a=1 from 50% to 80%")
	return cfg
}

// A run over several sources that is stopped goes on bit for bit, with packed documents, longer and longer sequences,
// larger and larger steps, an order of their own, and samples left out; its last lines of metrics are the same.
func TestMixedRunsResumeBitForBit(t *testing.T) {
	a, b := traintest.Data(t), traintest.DataWith(t, 0.2, tokenizer.TrainOptions{VocabSize: 320})
	for _, packing := range []string{"concat", "best_fit"} {
		cfg := mixConfig(a, b)
		cfg.Data.Packing, cfg.Data.Skip, cfg.Train.Steps = packing, dataset.SkipList{{From: 20, To: 31}}, 24
		cfg.Train.MicroBatch, cfg.Schedule.Warmup = 4, 1
		traintest.Override(cfg, "train.length_warmup=16 over 4 steps", "train.batch_ramp=128 over 2K tokens")
		traintest.Override(cfg, "data.weights=a=3 b=1, b=1 from 30%, a=1 from 50% to 80%")
		if err := cfg.Validate(); err != nil {
			t.Fatal(err)
		}
		whole := filepath.Join(t.TempDir(), "whole")
		want := mustRun(t, Options{Config: cfg.Clone(), Dir: whole})
		dir := filepath.Join(t.TempDir(), "stopped")
		if r, err := Run(&countdown{context.Background(), 17}, Options{Config: cfg.Clone(), Dir: dir}); err != nil ||
			!r.Interrupted {
			t.Fatalf("%s: interrupted %+v, %v", packing, r, err)
		}
		got, err := Resume(context.Background(), Options{
			Dir: dir, Threads: 2, Warn: func(s string) { t.Errorf("%s: warning %q", packing, s) },
		})
		if err != nil {
			t.Fatal(err)
		}
		if got.WeightsHash != want.WeightsHash || got.ValLoss != want.ValLoss ||
			got.SourceTokens["a"] != want.SourceTokens["a"] {
			t.Errorf("%s: weights %.12s, validation %v after an interruption; %.12s, %v without",
				packing, got.WeightsHash, got.ValLoss, want.WeightsHash, want.ValLoss)
		}
		x, y := readMetrics(t, dir), readMetrics(t, whole)
		for i := range y {
			p, _ := json.Marshal([]any{x[i]["source_loss"], x[i]["source_tokens"], x[i]["source_val_bits_per_byte"]})
			q, _ := json.Marshal([]any{y[i]["source_loss"], y[i]["source_tokens"], y[i]["source_val_bits_per_byte"]})
			if string(p) != string(q) {
				t.Fatalf("%s: line %d says %s of the sources after an interruption, %s without", packing, i, p, q)
			}
		}
	}
}

// A change of the mixture comes at its step even if the batch is edited before it: in a branch, and in a run that is
// resumed, also twice.
func TestAChangeOfTheMixComesAtItsStep(t *testing.T) {
	a, b := traintest.Data(t), traintest.DataWith(t, 0.2, tokenizer.TrainOptions{VocabSize: 320})
	cfg := traintest.Config("")
	cfg.Train.Steps, cfg.Schedule.Warmup, cfg.Train.EvalEvery = 36, 1, 0
	traintest.Override(cfg, "data.mix=a="+a+", b="+b, "data.weights=a=1, b=1 from 32 steps")
	stopAt := func(o Options, step int, f func(context.Context, Options) (*Result, error)) {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		o.OnProgress = func(e train.Event) {
			if e.Step == step {
				cancel()
			}
		}
		if r, err := f(ctx, o); err != nil || !r.Interrupted {
			t.Fatal(r, err)
		}
	}
	dir := filepath.Join(t.TempDir(), "run")
	stopAt(Options{Config: cfg, Dir: dir}, 16, Run)
	edit(t, dir, "train.batch_tokens=512")
	other := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if n := Continued(dir, mustLoad(t, dir)).Tokens(); n != 16*256+20*512 {
		t.Errorf("%d tokens are planned", n)
	}
	branch := filepath.Join(t.TempDir(), "branch")
	if _, err := Branch(context.Background(), Options{Config: mustLoad(t, dir), Dir: branch}, dir, 16); err != nil {
		t.Fatal(err)
	}
	want := resumeTo(t, dir)
	stopAt(Options{Dir: other}, 34, Resume)
	if r, err := Verify(other); err != nil || len(r.Remarks) > 0 {
		t.Errorf("%v, %+v", err, r)
	}
	if got := resumeTo(t, other); got != want {
		t.Errorf("stopped again after the change, it ends with %.12s, want %.12s", got[0], want[0])
	}
	for _, dir := range []string{dir, other, branch} {
		for _, l := range readMetrics(t, dir) {
			_, read := l["source_loss"].(map[string]any)["b"]
			if step := int(l["step"].(float64)); read != (step > 32) {
				t.Errorf("%s: step %d has read b: %v", dir, step, read)
			}
		}
	}
}

// After an edit a change that is given in tokens may lie beyond the end of the run, which is then read without it.
func TestAChangeOfTheMixMayComeTooLate(t *testing.T) {
	a, b := traintest.Data(t), traintest.DataWith(t, 0.2, tokenizer.TrainOptions{VocabSize: 320})
	cfg := traintest.Config("")
	cfg.Train.Steps, cfg.Schedule.Warmup, cfg.Train.EvalEvery = 80, 1, 0
	traintest.Override(cfg, "data.mix=a="+a+", b="+b, "data.weights=a=1, b=1 from 16384 tokens")
	dir := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if _, err := Run(ctx, Options{Config: cfg, Dir: dir, OnProgress: func(e train.Event) {
		if e.Step == 16 {
			cancel()
		}
	}}); err != nil {
		t.Fatal(err)
	}
	edit(t, dir, "train.batch_tokens=512", "train.steps=36") // 14,336 tokens in all
	r, err := Resume(context.Background(), Options{Dir: dir})
	if err != nil || r.Step != 36 || r.SourceTokens["b"] != 0 {
		t.Errorf("%+v, want 36 steps without b: %v", r, err)
	}
	if _, err := Verify(dir); err != nil {
		t.Error(err)
	}
}

// A mix of which only one source is read is a run on that source, bit for bit.
func TestMixOfOneSourceIsARunOnIt(t *testing.T) {
	a, b := traintest.Data(t), traintest.DataWith(t, 0.2, tokenizer.TrainOptions{VocabSize: 320})
	alone := traintest.Config(a)
	alone.Train.Steps, alone.Schedule.Warmup = 10, 1
	mixed := alone.Clone()
	mixed.Data.Path = ""
	traintest.Override(mixed, "data.mix=a="+a+", b="+b, "data.weights=a=1")
	want := mustRun(t, Options{Config: alone, Dir: filepath.Join(t.TempDir(), "alone")})
	got := mustRun(t, Options{Config: mixed, Dir: filepath.Join(t.TempDir(), "mixed")})
	if got.WeightsHash != want.WeightsHash || got.SourceTokens["b"] != 0 || got.SourceTokens["a"] != 10*256 {
		t.Errorf("weights %.12s, %v tokens; alone %.12s", got.WeightsHash, got.SourceTokens, want.WeightsHash)
	}
	if math.Abs(float64(got.ValSources[0].Loss)-want.ValLoss) > 0.05*want.ValLoss { // of half as many tokens
		t.Errorf("validation loss of a %v, alone %v", got.ValSources[0].Loss, want.ValLoss)
	}
}

// What is yet to come can be mixed otherwise: a branch takes up another source. What has been cannot.
func TestBranchesCanChangeTheMix(t *testing.T) {
	a, b := traintest.Data(t), traintest.DataWith(t, 0.2, tokenizer.TrainOptions{VocabSize: 320})
	cfg := traintest.Config(a)
	cfg.Train.Steps, cfg.Checkpoint.Every, cfg.Checkpoint.Keep, cfg.Schedule.Warmup = 40, 10, 9, 1
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: cfg, Dir: dir})
	later := func(weights string) *config.Config {
		c := cfg.Clone()
		c.Data.Path = ""
		traintest.Override(c, "data.mix=a="+a+", b="+b, "data.weights="+weights)
		return c
	}
	whole := mustRun(t, Options{Config: later("a=1, b=1 from 32"), Dir: filepath.Join(t.TempDir(), "whole")})
	branch, err := Branch(context.Background(),
		Options{Config: later("a=1, b=1 from 32"), Dir: filepath.Join(t.TempDir(), "branch")}, dir, 30)
	if err != nil || branch.WeightsHash != whole.WeightsHash {
		t.Errorf("%v; weights %+v, from the start %.12s", err, branch, whole.WeightsHash)
	}
	for weights, want := range map[string]int{"a=1, b=1 from 32": 30, "a=1, b=1 from 16": 10, "a=1 b=1": 0} {
		switch at, err := BranchPoint(dir, later(weights)); {
		case at != want:
			t.Errorf("%s branches off at step %d, want %d: %v", weights, at, want, err)
		case want == 0 && (err == nil || !strings.Contains(err.Error(), "start with that data set alone")):
			t.Errorf("%s: %v", weights, err)
		}
	}
	_, err = Branch(context.Background(),
		Options{Config: later("a=1, b=1 from 16"), Dir: filepath.Join(t.TempDir(), "other")}, dir, 30)
	if err == nil || !strings.Contains(err.Error(), "start with that data set alone") {
		t.Errorf("a mix that has begun before the branch: %v", err)
	}
}

// A checkpoint from before packing, orders and mixes resumes without a warning and gives the same bits.
func TestOlderCheckpointsResumeWithoutWarnings(t *testing.T) {
	cfg := traintest.Config(traintest.Data(t))
	cfg.Train.Steps = 20
	whole := mustRun(t, Options{Config: cfg.Clone(), Dir: filepath.Join(t.TempDir(), "whole")})
	dir := filepath.Join(t.TempDir(), "stopped")
	if r, err := Run(&countdown{context.Background(), 13}, Options{Config: cfg.Clone(), Dir: dir}); err != nil ||
		!r.Interrupted {
		t.Fatalf("interrupted %+v, %v", r, err)
	}
	// The same in the words of before: config.yaml and the saved state do not have the keys.
	text, err := os.ReadFile(filepath.Join(dir, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		key, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		if key != "packing" && key != "order" && key != "mix" && key != "weights" && key != "skip" {
			lines = append(lines, line)
		}
	}
	lines[0] = "# Made in \"" + dir + "\"; \n" // nor do runs have an id
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(strings.Join(lines, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	var last map[string]any
	s, err := newSession(mustLoad(t, dir), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.openStore(checkpoint.Origin{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.store.LoadLatest(s.tensors, &last); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"Packing", "Order", "Mix", "Weights", "Skip"} {
		delete(last["config"].(map[string]any)["Data"].(map[string]any), k)
	}
	step := int64(last["progress"].(map[string]any)["step"].(float64))
	s.store.Close()
	if err := os.RemoveAll(filepath.Join(dir, "checkpoints")); err != nil {
		t.Fatal(err)
	}
	if s.store, err = checkpoint.Open(filepath.Join(dir, "checkpoints"),
		checkpoint.Options{Keep: 2, Synchronous: true}); err != nil {
		t.Fatal(err)
	}
	if err := s.store.Save(step, int64(last["progress"].(map[string]any)["tokens"].(float64)), s.tensors,
		&last); err != nil {
		t.Fatal(err)
	}
	s.close()
	got, err := Resume(context.Background(), Options{
		Dir: dir, Warn: func(text string) { t.Errorf("warning: %s", text) },
	})
	if err != nil || got.WeightsHash != whole.WeightsHash {
		t.Errorf("%v; weights %+v, without an interruption %.12s", err, got, whole.WeightsHash)
	}
}

func mustLoad(t *testing.T, dir string) *config.Config {
	t.Helper()
	cfg, err := runDir(dir).load()
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}
