package run

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/internal/isa"
	"anneal/train"
	"anneal/train/traintest"
)

// edit changes the configuration that a run has on disk.
func edit(t *testing.T, dir string, overrides ...string) {
	t.Helper()
	cfg, err := config.Load(filepath.Join(dir, "config.yaml"), overrides)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n") // it names the run
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), append([]byte(first+"\n"), cfg.YAML()...),
		0o666); err != nil {
		t.Fatal(err)
	}
}

// Every value that was changed in the file is named when the run resumes with it.
func TestResumeNamesWhatWasChanged(t *testing.T) {
	cfg := traintest.Config(traintest.Data(t))
	cfg.Train.Steps, cfg.Schedule.Warmup = 4, 1
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: cfg, Dir: dir})
	resume := func() string {
		t.Helper()
		var said []string
		if _, err := Resume(context.Background(), Options{
			Dir: dir, Warn: func(s string) { said = append(said, s) },
		}); err != nil {
			t.Fatal(err)
		}
		return strings.Join(said, "\n")
	}
	edit(t, dir, "threads=1", "checkpoint.keep=5", "train.eval_every=3")
	if said := resume(); !strings.Contains(said, "checkpoint.keep: 3 → 5") {
		t.Errorf("the warning does not say what was changed: %s", said)
	}
	edit(t, dir, "optimizer.lr=0.25", "train.steps=6")
	said := resume()
	for _, want := range []string{"train.steps: 4 → 6", "optimizer.lr: ", "→ 0.25", "step 4"} {
		if !strings.Contains(said, want) {
			t.Errorf("the warning does not say %q: %s", want, said)
		}
	}
	if said := resume(); said != "" {
		t.Errorf("a change that a checkpoint has taken over was reported again: %s", said)
	}
}

// A run that is already past its train.steps is not resumed; one that is at it repeats its results.
func TestARunIsNotResumedPastItsSteps(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	want := mustRun(t, Options{Config: with(t, traintest.Data(t), "train.steps=4", "checkpoint.every=2"), Dir: dir})
	edit(t, dir, "train.steps=3", "schedule.warmup=0")
	_, err := Resume(context.Background(), Options{Dir: dir})
	if wrong := (config.Problem{}); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "is at step 4") ||
		!strings.Contains(err.Error(), "config.yaml:") {
		t.Errorf("past its steps: %v", err)
	}
	edit(t, dir, "train.steps=4")
	if r, err := Resume(context.Background(), Options{Dir: dir}); err != nil || r.WeightsHash != want.WeightsHash {
		t.Errorf("at its steps: %+v, %v", r, err)
	}
}

// A damaged checkpoint is passed over with one warning, which names the fault and what is used instead.
func TestADamagedCheckpointIsReportedOnce(t *testing.T) {
	cfg := traintest.Config(traintest.Data(t))
	cfg.Train.Steps, cfg.Schedule.Warmup, cfg.Checkpoint.Every = 2, 1, 1
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: cfg, Dir: dir})
	if err := os.Truncate(filepath.Join(dir, "checkpoints", "step-00000002", "model.safetensors"), 100); err != nil {
		t.Fatal(err)
	}
	var said []string
	if _, err := Resume(context.Background(), Options{
		Dir: dir, Warn: func(s string) { said = append(said, s) },
	}); err != nil {
		t.Fatal(err)
	}
	if len(said) != 1 || !strings.Contains(said[0], "model.safetensors") ||
		!strings.Contains(said[0], "step-00000001") {
		t.Errorf("said %q; want one warning with the damaged file and the checkpoint used", said)
	}
}

// A run out of minutes ends after a whole step, measured and saved; resumed, it has its minutes again.
func TestMinutesEndARun(t *testing.T) {
	cfg, dir := traintest.Config(traintest.Data(t)), filepath.Join(t.TempDir(), "run")
	cfg.Train.Minutes = 1e-9
	r := mustRun(t, Options{Config: cfg, Dir: dir})
	if r.Step != 1 || r.Interrupted || math.IsNaN(r.ValBitsPerByte) {
		t.Errorf("ended at step %d, interrupted %v, %v bits per byte; want step 1, measured",
			r.Step, r.Interrupted, r.ValBitsPerByte)
	}
	r, err := Resume(context.Background(), Options{Dir: dir})
	if err != nil || r.Step != 2 {
		t.Errorf("resumed it ended at step %d, %v; want 2", r.Step, err)
	}
	edit(t, dir, "train.minutes=10", "train.steps=5", "schedule.warmup=1")
	if r, err = Resume(context.Background(), Options{Dir: dir}); err != nil || r.Step != 5 {
		t.Errorf("with time for all it ended at step %d, %v; want 5", r.Step, err)
	}
}

// countdown is a context that ends when it was asked so many times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// familyConfig is a run of six steps of a family.
func familyConfig(family, data string) *config.Config {
	cfg := traintest.Config(data)
	cfg.Model.Family, cfg.Model.FFN = family, 0
	cfg.Resolve()
	cfg.Train.MicroBatch, cfg.Train.Steps, cfg.Schedule.Warmup, cfg.Train.EvalEvery = 2, 6, 1, 0
	return cfg
}

// Wherever a run is stopped, in a step, or while it evaluates or is asked tasks, what it reports and keeps after it was
// resumed is what an uninterrupted run does.
func TestStoppedAtAnyQuestionARunEndsTheSame(t *testing.T) {
	data, tasks := traintest.Data(t), taskDir(t, "")
	make := func() *config.Config {
		cfg := traintest.Config(data)
		cfg.Train.Steps, cfg.Train.MicroBatch, cfg.Train.EvalEvery, cfg.Train.EvalTokens = 2, 8, 1, 512
		cfg.Schedule.Warmup, cfg.Eval.Tasks, cfg.Eval.TasksEvery = 1, tasks, 1
		cfg.Samples.Every, cfg.Samples.Tokens = 1, 2
		cfg.Log.Sinks = config.Sinks{config.TensorBoard}
		return cfg
	}
	// what TensorBoard gets: of each step its loss and its evaluation, once
	shown := func(dir string) (steps, evaluations int) {
		files, _ := filepath.Glob(filepath.Join(dir, "tensorboard", "*"))
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			steps += strings.Count(string(text), "train/loss")
			evaluations += strings.Count(string(text), "val/loss")
		}
		return steps, evaluations
	}
	kept := func(dir string) (lines []map[string]any, samples []int) {
		for _, l := range readMetrics(t, dir) {
			made := map[string]any{}
			for _, key := range []string{"step", "loss", "val_loss", "val_bits_per_byte", "activation_rms", "tasks"} {
				made[key] = l[key]
			}
			lines = append(lines, made)
		}
		return lines, runDir(dir).sampled()
	}
	whole := filepath.Join(t.TempDir(), "run")
	want := mustRun(t, Options{Config: make(), Dir: whole})
	lines, samples := kept(whole)
	if len(lines) != 2 || len(samples) != 2 || lines[1]["val_loss"] == nil || lines[1]["tasks"] == nil {
		t.Fatalf("an uninterrupted run keeps %v and the samples of steps %v", lines, samples)
	}
	stops := 0
	for n := 0; ; n++ {
		dir := filepath.Join(t.TempDir(), "run")
		evaluated, asked := map[int]bool{}, map[int]bool{}
		progress := func(e train.Event) {
			if e.Evaluated() {
				evaluated[e.Step] = true
			}
			if e.Tasks != nil {
				asked[e.Step] = true
			}
		}
		r, err := Run(&countdown{context.Background(), n}, Options{Config: make(), Dir: dir, OnProgress: progress})
		if err != nil {
			t.Fatalf("stopped at question %d: %v", n, err)
		}
		if !r.Interrupted {
			break
		}
		stops++
		r, err = Resume(context.Background(), Options{Dir: dir, OnProgress: progress})
		if err != nil {
			t.Fatalf("stopped at question %d and resumed: %v", n, err)
		}
		if len(evaluated) != 2 || len(asked) != 2 {
			t.Errorf("stopped at question %d and resumed: its progress has %d of 2 evaluations, and tasks of %d of 2 "+
				"steps", n, len(evaluated), len(asked))
		}
		if steps, evaluations := shown(dir); steps != 2 || evaluations != 2 {
			t.Errorf("stopped at question %d and resumed: TensorBoard gets %d steps and %d evaluations, want 2 of each",
				n, steps, evaluations)
		}
		if r.Interrupted || r.Step != want.Step || r.WeightsHash != want.WeightsHash || r.TrainLoss != want.TrainLoss ||
			r.ValLoss != want.ValLoss || r.ValBitsPerByte != want.ValBitsPerByte {
			t.Errorf("stopped at question %d and resumed: step %d, weights %.12s, losses %v and %v; uninterrupted: "+
				"step %d, %.12s, %v and %v",
				n, r.Step, r.WeightsHash, r.TrainLoss, r.ValLoss, want.Step, want.WeightsHash,
				want.TrainLoss, want.ValLoss)
		}
		var last state
		if _, err := checkpoint.LoadState(runDir(dir).checkpoints(), &last); err != nil || last.Due ||
			last.EvalStep != want.Step {
			t.Errorf("stopped at question %d and resumed: the next resume evaluates again: %v", n, err)
		}
		if l, x := kept(dir); !reflect.DeepEqual(l, lines) || !slices.Equal(x, samples) {
			t.Errorf("stopped at question %d and resumed: it keeps %v and the samples of steps %v; uninterrupted: "+
				"%v, %v", n, l, x, lines, samples)
		}
	}
	if steps, evaluations := 2*1, 2*2; stops < steps+evaluations {
		t.Errorf("the run was stopped at %d places, it has %d micro-batches and %d batches of evaluation",
			stops, steps, evaluations)
	}
}

// Kernels of another tier round differently: the run resumes with a warning.
func TestResumeOnOtherKernelsWarns(t *testing.T) {
	tiers := isa.Tiers()
	if len(tiers) < 2 {
		t.Skip("this machine runs one tier of kernels")
	}
	cfg, dir := traintest.Config(traintest.Data(t)), filepath.Join(t.TempDir(), "run")
	cfg.Train.Steps, cfg.Schedule.Warmup = 2, 1
	t.Setenv("ANNEAL_CPU", tiers[0].String())
	mustRun(t, Options{Config: cfg, Dir: dir})
	for _, tier := range tiers[:2] {
		t.Setenv("ANNEAL_CPU", tier.String())
		var warnings []string
		if _, err := Resume(context.Background(), Options{
			Dir: dir, Warn: func(s string) { warnings = append(warnings, s) },
		}); err != nil {
			t.Fatal(err)
		}
		said := strings.Contains(strings.Join(warnings, "\n"), tiers[0].String()+" kernels")
		if said != (tier != tiers[0]) {
			t.Errorf("trained with %v, resumed with %v: warnings %q", tiers[0], tier, warnings)
		}
	}
}
