package train

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/dataset"
	"anneal/device/cpu"
)

// weightsOf copies all weights, as float64.
func weightsOf(t *Trainer) []float64 {
	var w []float64
	for _, p := range t.Model().Params() {
		for i := range p.Value.Len() {
			w = append(w, p.Value.Float64(i))
		}
	}
	return w
}

// After every step the average is the sum of the initial and all later weights, each with the weight that the decays
// leave it, computed in one go in float64.
func TestMovingAverageIsTheWeightedSum(t *testing.T) {
	p := loadParity(t)
	for policy, tolerance := range map[string]float64{"fp32": 2e-7, "bf16_sr": 2e-7, "fp64": 1e-14} {
		tr, src := parityTrainer(t, p, 0, policy, 1, 4)
		if err := withAverage(tr, 0.75); err != nil { // reached after 26 updates: 27/36
			t.Fatal(err)
		}
		history := [][]float64{weightsOf(tr)}
		for step := 1; step <= 40; step++ {
			if _, err := tr.Step(context.Background(), src); err != nil {
				t.Fatal(err)
			}
			history = append(history, weightsOf(tr))
			want := make([]float64, len(history[0]))
			left := 1.0
			for k := step; k >= 0; k-- {
				share := left
				if k > 0 {
					d := min(0.75, float64(1+k)/float64(10+k))
					share, left = left*(1-d), left*d
				}
				for i, w := range history[k] {
					want[i] += share * w
				}
			}
			at := 0
			for n := range tr.average.values {
				x := &tr.average.values[n]
				for i := range x.Len() {
					if got := x.Float64(i); math.Abs(got-want[at]) > tolerance*(1+math.Abs(want[at])) {
						t.Fatalf("%s: step %d, tensor %d, element %d: %v, want %v", policy, step, n, i, got, want[at])
					}
					at++
				}
			}
		}
	}
}

// withAverage gives a trainer that has none an average.
func withAverage(tr *Trainer, decay float64) error {
	tr.cfg.Average.EMA = decay
	bytes := int64(0)
	for _, p := range tr.Model().Params() {
		bytes += int64(p.Grad.Bytes() + 64)
	}
	arenas, err := newArenas(tr.dev, []Part{{WeightAverage, bytes}})
	if err != nil {
		return err
	}
	tr.arenas = append(tr.arenas, arenas...)
	tr.startAverage(arenas[0])
	return nil
}

// An average changes no bit of the weights, is restored bit for bit, and its evaluation is that of a model with its
// weights.
func TestAverageIsBesideTheWeights(t *testing.T) {
	data := testData(t)
	run := func(ema float64, steps int) (*config.Config, string) {
		cfg := tinyConfig(data)
		cfg.Train.Steps, cfg.Average.EMA, cfg.Train.EvalTokens, cfg.Schedule.Warmup = steps, ema, 0, 1
		return cfg, filepath.Join(t.TempDir(), "run")
	}
	plainConfig, plainDir := run(0, 12)
	plain := mustRun(t, Options{Config: plainConfig, Dir: plainDir})
	cfg, dir := run(0.9, 12)
	whole := mustRun(t, Options{Config: cfg, Dir: dir})
	if plain.WeightsHash != whole.WeightsHash || plain.ValLoss != whole.ValLoss {
		t.Errorf("with an average the weights are %.12s at loss %v, without %.12s at %v", whole.WeightsHash, whole.ValLoss, plain.WeightsHash, plain.ValLoss)
	}
	sizes := map[string]int64{}
	for _, a := range whole.Arenas {
		sizes[a.Name] = a.Peak
	}
	if sizes["weight average"] != sizes["gradients"] || len(plain.Arenas) != len(whole.Arenas)-1 {
		t.Errorf("the average takes %d bytes, the gradients %d", sizes["weight average"], sizes["gradients"])
	}
	if !math.IsNaN(plain.ValLossEMA) || !(whole.ValLossEMA > whole.ValLoss) {
		t.Errorf("loss of the average: %v without one, %v beside %v", plain.ValLossEMA, whole.ValLossEMA, whole.ValLoss)
	}
	r, err := OpenWith(dir, OpenOptions{Threads: 1, WeightOptions: WeightOptions{Average: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if e, err := r.Evaluate(context.Background(), data, 0, nil); err != nil || e.Loss != whole.ValLossEMA {
		t.Errorf("opened, the average has loss %v (%v), the run reported %v", e.Loss, err, whole.ValLossEMA)
	}
	lines := readMetrics(t, dir)
	if got := lines[len(lines)-1]["val_loss_ema"]; got != whole.ValLossEMA {
		t.Errorf("metrics say %v", got)
	}
	if r, err := OpenWith(plainDir, OpenOptions{Threads: 1, WeightOptions: WeightOptions{Average: true}}); err == nil || !strings.Contains(err.Error(), "anneal ckpt average") {
		t.Errorf("a run without an average was opened: %v, %v", r, err)
	}
	// Stopped and resumed.
	cfg, dir = run(0.9, 12)
	if r, err := Run(&countdown{context.Background(), 5}, Options{Config: cfg, Dir: dir}); err != nil || !r.Interrupted {
		t.Fatal(err)
	}
	if got := resumeTo(t, dir); got != [2]string{whole.WeightsHash, whole.OptimizerHash} {
		t.Errorf("resumed: %v, uninterrupted %v", got, whole)
	}
	if _, other, _, err := checkpoint.Hash(filepath.Join(dir, "checkpoints")); err != nil || other != whole.OptimizerHash {
		t.Errorf("the checkpoint's state has hash %v, %v; the run's %v", other, err, whole.OptimizerHash)
	}
}

// A run may begin to average at any time, and stop; neither is silent.
func TestAverageTurnedOnAndOff(t *testing.T) {
	cfg, dir := tinyConfig(testData(t)), filepath.Join(t.TempDir(), "run")
	cfg.Train.Steps, cfg.Schedule.Warmup, cfg.Train.EvalTokens = 4, 1, 256
	mustRun(t, Options{Config: cfg, Dir: dir})
	for _, c := range []struct {
		set  string
		says string
	}{{"average.ema=0.99", "begins with the weights of step 4"}, {"average.ema=0", "average.ema: 0.99 → 0"}} {
		steps, _ := Config(dir)
		edit(t, dir, c.set, "train.steps="+map[int]string{4: "6", 6: "8"}[steps.Train.Steps])
		var said []string
		if _, err := Resume(context.Background(), Options{Dir: dir, Warn: func(s string) { said = append(said, s) }}); err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(said, "\n"); !strings.Contains(text, c.says) {
			t.Errorf("%s: said %q", c.set, text)
		}
	}
}

func TestAveragingStepAllocatesNothing(t *testing.T) {
	tr, _ := parityTrainer(t, loadParity(t), 0, "bf16", 2, 2)
	if err := withAverage(tr, 0.999); err != nil {
		t.Fatal(err)
	}
	tr.batch.ZLoss = 1e-4
	src := dataset.NewRandom(64, 16, 1)
	step := func() {
		if _, err := tr.Step(context.Background(), src); err != nil {
			t.Fatal(err)
		}
	}
	step()
	if n := testing.AllocsPerRun(10, step); n != 0 {
		t.Errorf("%v allocations per step, want 0", n)
	}
}

// The mean of checkpoints is that of their weights, element for element in float64, and can be used as a run.
func TestAverageOfCheckpoints(t *testing.T) {
	cfg, dir, out := tinyConfig(testData(t)), filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "mean")
	cfg.Train.Steps, cfg.Checkpoint.Every, cfg.Checkpoint.Keep, cfg.Schedule.Warmup = 8, 2, 10, 1
	mustRun(t, Options{Config: cfg, Dir: dir})
	var want []float64
	for _, step := range []string{"4", "6", "8"} {
		copied := filepath.Join(t.TempDir(), "run")
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		for _, later := range []string{"6", "8"} {
			if later > step {
				os.RemoveAll(filepath.Join(copied, "checkpoints", "step-0000000"+later))
			}
		}
		for i, w := range openedWeights(t, copied) {
			if step == "4" {
				want = append(want, 0)
			}
			want[i] += w
		}
	}
	r, err := AverageCheckpoints(dir, 3, out)
	if err != nil || !slices.Equal(r.Steps, []int64{4, 6, 8}) {
		t.Fatalf("%+v, %v", r, err)
	}
	for i, got := range openedWeights(t, out) {
		if w := float64(float32(want[i] / 3)); got != w {
			t.Fatalf("weight %d of the mean is %v, want %v", i, got, w)
		}
	}
	again, err := AverageCheckpoints(dir, 3, filepath.Join(t.TempDir(), "mean"))
	if err != nil || again.WeightsHash != r.WeightsHash {
		t.Errorf("made again it has hash %v, %v; the first %v", again, err, r.WeightsHash)
	}
	for n, says := range map[int]string{-1: "--last from 2 to 4", 1: "--last from 2 to 4", 5: "checkpoint.keep"} {
		if _, err := AverageCheckpoints(dir, n, filepath.Join(t.TempDir(), "x")); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the last %d: %v, want it to say %q", n, err, says)
		}
	}
	if _, err := AverageCheckpoints(dir, 2, out); err == nil || !strings.Contains(err.Error(), ErrExists.Error()) {
		t.Errorf("onto a run: %v", err)
	}
	if err := os.Truncate(filepath.Join(dir, "checkpoints", "step-00000006", "model.safetensors"), 100); err != nil {
		t.Fatal(err)
	}
	nowhere := filepath.Join(t.TempDir(), "y")
	if _, err := AverageCheckpoints(dir, 2, nowhere); err == nil || !strings.Contains(err.Error(), "ckpt verify") || Exists(nowhere) {
		t.Errorf("of a damaged checkpoint: %v, a run was made: %v", err, Exists(nowhere))
	}
}

// openedWeights returns the weights of the newest checkpoint of a run.
func openedWeights(t *testing.T, dir string) []float64 {
	t.Helper()
	var w []float64
	for _, p := range loaded(t, dir).Model.Params() {
		for i := range p.Value.Len() {
			w = append(w, p.Value.Float64(i))
		}
	}
	return w
}

// loaded returns the weights of the run in dir, until the test ends.
func loaded(t *testing.T, dir string) *Weights {
	t.Helper()
	dev, err := cpu.New(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dev.Close)
	w, err := OpenWeights(dir, WeightOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	if err := w.Load(dev); err != nil {
		t.Fatal(err)
	}
	return w
}
