package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/checkpoint"
	"anneal/config"
	"anneal/dataset"
	"anneal/prepare"
	"anneal/train/traintest"
)

// rewindConfig is a run of 24 steps of 8 samples that keeps every checkpoint.
func rewindConfig(data string) *config.Config {
	cfg := traintest.Config(data)
	cfg.Train.Steps, cfg.Checkpoint.Every, cfg.Checkpoint.Keep, cfg.Train.EvalEvery, cfg.Train.EvalTokens = 24,
		4, 100, 0, 256
	cfg.Schedule.Warmup = 4
	return cfg
}

// leaveOut serves a data set as if it had never had some samples, which it finds one by one.
type leaveOut struct {
	dataset.Source
	out map[uint64]bool
}

func (s leaveOut) Batch(b *dataset.Batch, first uint64, rows int) error {
	var one dataset.Batch
	*b = dataset.Batch{Rows: rows, Context: s.Context()}
	n := uint64(0)
	for sample := uint64(0); len(b.Tokens) < rows*b.Context; sample++ {
		if s.out[sample] {
			continue
		}
		if n++; n <= first {
			continue
		}
		if err := s.Source.Batch(&one, sample, 1); err != nil {
			return err
		}
		b.Tokens, b.Targets, b.DocStart = append(b.Tokens, one.Tokens...), append(b.Targets, one.Targets...),
			append(b.DocStart, one.DocStart...)
	}
	return nil
}

// openedCorpus is the data of a config, open for training until the test ends.
func openedCorpus(t *testing.T, cfg *config.Config) *prepare.Corpus {
	t.Helper()
	c, err := prepare.OpenCorpus(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := c.OpenTraining(cfg); err != nil {
		t.Fatal(err)
	}
	return c
}

// neverSaw trains from the start on data without some samples and returns the hashes of the end.
func neverSaw(t *testing.T, cfg *config.Config, out map[uint64]bool) [2]string {
	t.Helper()
	c := openedCorpus(t, cfg)
	tr := trainerOf(t, cfg, 1)
	for range cfg.Train.Steps {
		if _, err := tr.Step(context.Background(), leaveOut{c.Train, out}); err != nil {
			t.Fatal(err)
		}
	}
	return hashes(tr)
}

func resumeTo(t *testing.T, dir string) [2]string {
	t.Helper()
	r, err := Resume(context.Background(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return [2]string{r.WeightsHash, r.OptimizerHash}
}

func mustRewind(t *testing.T, dir string, o RewindOptions) *RewindReport {
	t.Helper()
	r, err := Rewind(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func samples(ranges ...[2]uint64) map[uint64]bool {
	out := map[uint64]bool{}
	for _, r := range ranges {
		for k := r[0]; k < r[1]; k++ {
			out[k] = true
		}
	}
	return out
}

// A run that went back and left batches out ends with the bits of one whose data never had them: after one rewind,
// after a second one across the gap of the first, and stopped and resumed on the way.
func TestARewoundRunNeverSawTheBatches(t *testing.T) {
	data, dir := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	mustRun(t, Options{Config: rewindConfig(data), Dir: dir})
	first := mustRewind(t, dir, RewindOptions{To: 15, Skip: []StepRange{{14, 15}, {17, 17}}})
	if first.From != 24 || first.Step != 12 || len(first.SetAside) != 3 || first.Skip != "104:120,128:136" ||
		first.Samples != 24 {
		t.Errorf("the report says %+v", first)
	}
	want := neverSaw(t, rewindConfig(data), samples([2]uint64{104, 120}, [2]uint64{128, 136}))
	for _, stop := range []int{0, 3, 7} { // micro-batches
		copied := filepath.Join(t.TempDir(), "run")
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		r, err := Resume(&countdown{context.Background(), stop}, Options{Dir: copied})
		if err != nil {
			t.Fatal(err)
		}
		if got := resumeTo(t, copied); got != want || !r.Interrupted {
			t.Fatalf("stopped at question %d (%v): %v, a run that never saw the batches has %v",
				stop, r.Interrupted, got, want)
		}
	}
	if got := resumeTo(t, dir); got != want {
		t.Errorf("resumed at once: %v, a run that never saw the batches has %v", got, want)
	}
	// Step 13 read samples 96–104, step 14 what comes after the gap.
	second := mustRewind(t, dir, RewindOptions{To: 12, SkipBatches: 2})
	if second.Skip != "96:128,128:136" && second.Skip != "96:136" || second.Samples != 16 || second.Step != 12 {
		t.Errorf("the second report says %+v", second)
	}
	want = neverSaw(t, rewindConfig(data), samples([2]uint64{96, 136}))
	if got := resumeTo(t, dir); got != want {
		t.Errorf("after the second rewind %v, a run that never saw the batches has %v", got, want)
	}
}

// Where steps grow, the batches of a step are those that it read.
func TestRewindCountsTheSamplesOfARamp(t *testing.T) {
	data, dir := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	ramped := func() *config.Config {
		cfg := rewindConfig(data)
		cfg.Train.Steps, cfg.Train.MicroBatch = 12, 2
		traintest.Override(cfg, "train.batch_ramp=64 until 384, 128 until 1024")
		return cfg
	}
	mustRun(t, Options{Config: ramped(), Dir: dir})
	// Steps 1–6 read 2 samples each, 7–11 four, 12 eight.
	if r := mustRewind(t, dir, RewindOptions{To: 5, Skip: []StepRange{{6, 8}}}); r.Step != 4 || r.Skip != "10:20" {
		t.Errorf("the report says %+v", r)
	}
	if got, want := resumeTo(t, dir), neverSaw(t, ramped(), samples([2]uint64{10, 20})); got != want {
		t.Errorf("%v, a run that never saw the batches has %v", got, want)
	}
}

// Batches have the numbers and the samples that they had when they were read, whatever the batch is now.
func TestRewindKnowsTheBatchesOfBefore(t *testing.T) {
	data, dir := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	cfg := rewindConfig(data)
	cfg.Train.Steps, cfg.Train.MicroBatch = 12, 4
	mustRun(t, Options{Config: cfg, Dir: dir})
	edit(t, dir, "train.batch_tokens=128", "train.steps=24")
	resumeTo(t, dir)
	edit(t, dir, "train.batch_tokens=512", "train.steps=30")
	// Steps 1–12 read 8 samples each, 13–24 four; later ones would read 16.
	for _, c := range []struct {
		to   int
		skip StepRange
		want string
	}{{22, StepRange{23, 26}, "136:176"}, {8, StepRange{10, 14}, "72:104"}} {
		copied := filepath.Join(t.TempDir(), "run")
		if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if r := mustRewind(t, copied, RewindOptions{To: c.to, Skip: []StepRange{c.skip}}); r.Skip != c.want {
			t.Errorf("%+v leaves out %s, want %s", c.skip, r.Skip, c.want)
		}
	}
	edit(t, dir, "guard.on_divergence=rewind", "guard.rewinds=1")
	o := Options{Dir: dir, Warn: func(string) {}}
	if again, err := rewindDiverged(&DivergedError{Step: 14, First: 12, Skips: 3, Dir: dir}, o); err != nil || !again {
		t.Fatal(again, err)
	}
	if skip := mustLoad(t, dir).Data.Skip.String(); skip != "64:104" {
		t.Errorf("the run left out %s by itself, want 64:104", skip)
	}
}

// Stopped between or within any of its parts, a rewind is completed by the next resume, which ends with the same bits.
func TestARewindStoppedHalfwayIsCompleted(t *testing.T) {
	data, first := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	cfg := rewindConfig(data)
	cfg.Train.Steps, cfg.Checkpoint.Every = 8, 2
	mustRun(t, Options{Config: cfg, Dir: first})
	plan := rewindPlan{Step: 4, Skip: "40:48"}
	var want [2]string
	for _, stop := range []int{6, 0, -1, 1, 2, 3, 4, 5} { // 6 is none, −1 within the first part
		d := runDir(filepath.Join(t.TempDir(), "run"))
		if err := os.CopyFS(string(d), os.DirFS(first)); err != nil {
			t.Fatal(err)
		}
		if err := plan.write(d); err != nil {
			t.Fatal(err)
		}
		store, err := openToRewind(d, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		if stop < 0 {
			os.Mkdir(filepath.Join(d.checkpoints(), "aside"), 0o777)
			if err := os.Rename(filepath.Join(d.checkpoints(), "step-00000006"),
				filepath.Join(d.checkpoints(), "aside", "step-00000006")); err != nil {
				t.Fatal(err)
			}
		}
		var aside []string
		for _, part := range plan.parts(d, store, &aside, func(string) {})[:max(stop, 0)] {
			if err := part(); err != nil {
				t.Fatal(err)
			}
		}
		store.Close()
		got := resumeTo(t, string(d))
		if stop == 6 {
			want = got
		}
		if got != want {
			t.Errorf("stopped after %d parts: %v, want %v", stop, got, want)
		}
		if _, err := os.Stat(d.rewind()); !os.IsNotExist(err) {
			t.Errorf("stopped after %d parts, the plan is still there: %v", stop, err)
		}
		for _, name := range []string{"step-00000006", "step-00000008"} {
			if _, err := os.Stat(filepath.Join(d.checkpoints(), "aside", name)); err != nil {
				t.Errorf("stopped after %d parts: %v", stop, err)
			}
		}
		rewound := 0
		lines := readMetrics(t, string(d))
		for _, l := range lines {
			if l["rewound"] == true {
				rewound++
			}
		}
		if len(lines) != 12 || rewound != 4 {
			t.Errorf("stopped after %d parts: %d lines of metrics, %d of them marked; want 12 and 4",
				stop, len(lines), rewound)
		}
	}
}

// Setting data.skip from the start is the same as going back to the start; a list that changes the past is refused.
func TestSkipsAreAValueOfTheConfiguration(t *testing.T) {
	data, dir, fresh := traintest.Data(t), filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "fresh")
	cfg := rewindConfig(data)
	cfg.Train.Steps = 4
	mustRun(t, Options{Config: cfg, Dir: dir})
	if r := mustRewind(t, dir, RewindOptions{To: 0, SkipBatches: 1}); r.Step != 0 || r.Checkpoint != "" {
		t.Errorf("back to the start: %+v", r)
	}
	cfg = rewindConfig(data)
	cfg.Train.Steps, cfg.Data.Skip = 4, dataset.SkipList{{From: 0, To: 8}}
	r := mustRun(t, Options{Config: cfg, Dir: fresh})
	if got := resumeTo(t, dir); got != [2]string{r.WeightsHash, r.OptimizerHash} {
		t.Error("a run rewound to its start differs from one that began with the list")
	}
	edit(t, dir, "data.skip=0:16")
	var data2 *dataset.Error
	if _, err := Resume(context.Background(), Options{Dir: dir}); !errors.As(err, &data2) ||
		!strings.Contains(err.Error(), "anneal rewind") {
		t.Errorf("a list that changes the past: %v", err)
	}
}

func TestRewindsThatCannotBeAreErrors(t *testing.T) {
	data, dir := traintest.Data(t), filepath.Join(t.TempDir(), "run")
	cfg := rewindConfig(data)
	cfg.Checkpoint.Keep, cfg.Train.Steps = 2, 20
	mustRun(t, Options{Config: cfg, Dir: dir})
	before, err := os.ReadFile(filepath.Join(dir, "config.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		o    RewindOptions
		want string
	}{
		{"to the future", RewindOptions{To: 21}, "it is at step 20"},
		{"to a negative step", RewindOptions{To: -1}, "step -1"},
		{"before the oldest checkpoint", RewindOptions{To: 7}, "its checkpoints are of steps 20, 16"},
		{"an empty range", RewindOptions{To: 16, Skip: []StepRange{{19, 18}}}, "19:18"},
		{"the past", RewindOptions{To: 19, Skip: []StepRange{{16, 18}}},
			"batch 16 cannot be skipped: the weights of step 16"},
		{"overlapping ranges", RewindOptions{To: 16, Skip: []StepRange{{17, 19}, {19, 20}}}, "overlap"},
		{"after the end", RewindOptions{To: 16, Skip: []StepRange{{17, 99}}}, "train.steps = 20"},
		{"twice", RewindOptions{To: 16, Skip: []StepRange{{17, 18}}, SkipBatches: 2}, "twice"},
		{"more than there are", RewindOptions{To: 16, SkipBatches: 21}, "21 batches exceed"},
		{"a negative number", RewindOptions{To: 16, SkipBatches: -2}, "negative"},
	} {
		if _, err := Rewind(dir, c.o); err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want it to say %q and what to do", c.name, err, c.want)
		}
	}
	store, err := checkpoint.Open(filepath.Join(dir, "checkpoints"), checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var locked *checkpoint.LockedError
	if _, err := Rewind(dir, RewindOptions{To: 16}); !errors.As(err, &locked) {
		t.Errorf("of a run in progress: %v", err)
	}
	store.Close()
	if _, err := Rewind(t.TempDir(), RewindOptions{}); !errors.Is(err, ErrNoRun) {
		t.Errorf("of no run: %v", err)
	}
	after, err := os.ReadFile(filepath.Join(dir, "config.yaml"))
	if entries, _ := checkpoint.List(filepath.Join(dir, "checkpoints")); err != nil || !slices.Equal(after, before) ||
		len(entries) != 2 {
		t.Errorf("refused rewinds changed the run: %d checkpoints, %v", len(entries), err)
	}
}

// A damaged checkpoint is passed over with a warning; the rewind goes further back.
func TestRewindPassesOverDamage(t *testing.T) {
	cfg, dir := rewindConfig(traintest.Data(t)), filepath.Join(t.TempDir(), "run")
	cfg.Train.Steps = 12
	mustRun(t, Options{Config: cfg, Dir: dir})
	if err := os.Truncate(filepath.Join(dir, "checkpoints", "step-00000008", "optim.safetensors"), 100); err != nil {
		t.Fatal(err)
	}
	var said []string
	r := mustRewind(t, dir, RewindOptions{To: 11, Warn: func(s string) { said = append(said, s) }})
	if r.Step != 4 || len(said) != 1 || !strings.Contains(said[0], "step-00000008") {
		t.Errorf("went back to step %d and said %q", r.Step, said)
	}
}

// A diverged run says how to leave its batches out, and a rewind that does it lets the run go on.
func TestADivergedRunCanLeaveItsBatchesOut(t *testing.T) {
	cfg, dir := rewindConfig(traintest.Data(t)), filepath.Join(t.TempDir(), "run")
	// Four good steps, then a rate at which one update makes every loss after it stand out, on any kernels.
	cfg.Train.Steps, cfg.Train.Clip, cfg.Schedule.Warmup, cfg.Guard.MaxSkips, cfg.Guard.SpikeZ, cfg.Guard.Window = 4, 0,
		1, 3, 6, 4
	mustRun(t, Options{Config: cfg, Dir: dir})
	edit(t, dir, "train.steps=12", "optimizer.lr=10", "optimizer.weight_decay=0") // decay at this rate is refused
	_, err := Resume(context.Background(), Options{Dir: dir})
	var diverged *DivergedError
	if !errors.As(err, &diverged) {
		t.Fatalf("%v, want a DivergedError", err)
	}
	first := diverged.First
	if !strings.Contains(err.Error(), fmt.Sprintf("--to %d --skip %d:%d", first-1, first, diverged.Step)) {
		t.Fatalf("%v, want it to leave out %d to %d", err, first, diverged.Step)
	}
	// The batches were not at fault here, so the run goes back to its start, and the rate is lowered too.
	r, err := Rewind(dir, RewindOptions{Skip: []StepRange{{first, diverged.Step}}})
	if err != nil || r.Samples != 24 {
		t.Fatalf("%+v, %v", r, err)
	}
	edit(t, dir, "optimizer.lr=1e-3")
	if r, err := Resume(context.Background(), Options{Dir: dir}); err != nil || r.Step != 12 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A damaged plan is the fault of the data, not of anneal.
func TestADamagedPlanIsADataError(t *testing.T) {
	cfg, dir := traintest.Config(traintest.Data(t)), filepath.Join(t.TempDir(), "run")
	cfg.Train.Steps, cfg.Schedule.Warmup = 2, 1
	mustRun(t, Options{Config: cfg, Dir: dir})
	if err := os.WriteFile(runDir(dir).rewind(), []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := Resume(context.Background(), Options{Dir: dir})
	if data := (*dataset.Error)(nil); !errors.As(err, &data) || !strings.Contains(err.Error(), "rewind again") {
		t.Errorf("%T: %v", err, err)
	}
}
