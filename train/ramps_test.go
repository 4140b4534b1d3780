package train

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anneal/config"
	"anneal/dataset"
	"anneal/schedule"
	"anneal/train/traintest"
)

// with returns a small configuration with some values replaced.
func with(t testing.TB, data string, overrides ...string) *config.Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	cfg := traintest.Config(data)
	cfg.Train.Steps, cfg.Train.MicroBatch, cfg.Schedule.Warmup, cfg.Train.EvalEvery, cfg.Checkpoint.Every,
		cfg.Checkpoint.Keep = 14, 1, 0, 0, 1, 100
	if err := os.WriteFile(path, cfg.YAML(), 0o666); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(path, overrides)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// everything is a run in which every counter of a phase differs from the steps: the batch and the length grow, and the
// rate warms up, decays, is at the peak again and decays again.
var everything = []string{
	"schedule.name=wsds", "schedule.branches=8", "schedule.warmup=2", "schedule.decay_fraction=0.3",
	"train.batch_ramp=64 over 1000 tokens", "train.length_warmup=8 over 10 steps", "train.noise_scale_every=3",
}

// recorder notes which samples are read.
type recorder struct {
	dataset.Source
	samples []uint64
}

func (r *recorder) Batch(b *dataset.Batch, first uint64, rows int) error {
	for i := range rows {
		r.samples = append(r.samples, first+uint64(i))
	}
	return r.Source.Batch(b, first, rows)
}

// SCH-7: while batch and length grow, every sample is read once, in order, and tokens are counted as they are read.
// The rate follows the batch as the rule says.
func TestRampsReadEverySampleOnce(t *testing.T) {
	for rule, factor := range map[string]func(float64) float64{
		"none": func(float64) float64 { return 1 }, "sqrt": math.Sqrt, "linear": func(x float64) float64 { return x },
	} {
		cfg := with(t, "random", "train.batch_ramp=64 until 130 tokens, 128 until 500",
			"train.length_warmup=8 over 8 steps",
			"train.batch_ramp_lr="+rule, "model.vocab=64", "schedule.name=constant", "schedule.warmup=1")
		tr := trainerOf(t, cfg, 1)
		src := &recorder{Source: dataset.NewRandom(64, cfg.Model.Context, 1)}
		// until 130 tokens three of 64; until 500 three of 128
		batches := []int{64, 64, 64, 128, 128, 128, 256, 256, 256}
		lengths := []int{8, 8, 8, 16, 16, 16, 16, 16, 32} // 8 + 3·(n−1), rounded down to a divisor of 32
		tokens := 0
		for n, batch := range batches {
			stats, err := tr.Step(context.Background(), src)
			if err != nil {
				t.Fatal(err)
			}
			tokens += batch
			if tr.Position().Tokens != int64(tokens) || tr.Position().Sample != uint64(tokens/32) ||
				len(src.samples) != tokens/32 {
				t.Fatalf("step %d: %d tokens in %d samples counted, %d read, want %d tokens",
					n+1, tr.Position().Tokens, tr.Position().Sample, len(src.samples), tokens)
			}
			if tr.batch.T != lengths[n] {
				t.Errorf("step %d: sequences of %d tokens, want %d", n+1, tr.batch.T, lengths[n])
			}
			if want := cfg.Optimizer.LR * factor(float64(batch)/256); math.Abs(stats.LR-want) > 1e-15 {
				t.Errorf("step %d, rule %s: rate %v, want %v", n+1, rule, stats.LR, want)
			}
		}
		for i, s := range src.samples {
			if s != uint64(i) {
				t.Fatalf("sample %d was read where %d was due", s, i)
			}
		}
		cfg.Train.Steps = len(batches)
		if got := cfg.Tokens(); got != int64(tokens) {
			t.Errorf("the plan is %d tokens, the run read %d", got, tokens)
		}
	}
}

// A step of a ramp is the same step as one of a run whose batch always had that size: same bits.
func TestAStepOfARampIsThatStep(t *testing.T) {
	step := func(overrides ...string) [2]string {
		cfg := with(t, "random", append(overrides, "model.vocab=64", "schedule.name=constant", "schedule.warmup=1")...)
		tr := trainerOf(t, cfg, 1)
		if _, err := tr.Step(context.Background(), dataset.NewRandom(64, cfg.Model.Context, 1)); err != nil {
			t.Fatal(err)
		}
		return hashes(tr)
	}
	ramped := step("train.batch_ramp=96 over 1000 tokens", "train.batch_ramp_lr=none")
	if plain := step("train.batch_tokens=96"); ramped != plain {
		t.Errorf("first step of a ramp from 96 tokens: %v, of a batch of 96: %v", ramped, plain)
	}
	if other := step("train.batch_tokens=128"); ramped == other {
		t.Error("a batch of 128 gives the same bits as one of 96: the comparison shows nothing")
	}
}

// The dry run plans the memory of the largest step, and of the longest sequences: a micro-batch stays what it is.
func TestRampsNeedNoMemory(t *testing.T) {
	sizes := func(overrides ...string) (list []int) {
		cfg := with(t, "random", append(overrides, "model.vocab=64")...)
		tr := trainerOf(t, cfg, 1)
		src := dataset.NewRandom(64, cfg.Model.Context, 1)
		for range 12 {
			if _, err := tr.Step(context.Background(), src); err != nil {
				t.Fatal(err)
			}
		}
		for _, a := range tr.Arenas() {
			list = append(list, a.Peak())
		}
		return list
	}
	noise := "train.noise_scale_every=3" // which takes room for a gradient
	if plain, ramped := fmt.Sprint(sizes(noise)), fmt.Sprint(sizes(everything...)); plain != ramped {
		t.Errorf("arenas with ramps take %s bytes, without %s", ramped, plain)
	}
}

func TestScheduleMistakesAreRefused(t *testing.T) {
	base := traintest.Config("data")
	path := filepath.Join(t.TempDir(), "config.yaml")
	base.Schedule.Warmup, base.Train.MicroBatch = 0, 0
	if err := os.WriteFile(path, base.YAML(), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ override, want string }{
		{"schedule.warmup=101%", "longer than the run"},
		{"schedule.warmup=1B tokens", "longer than the run"},
		{"schedule.warmup=soon", "is not a number of steps"},
		{"schedule.warmup=1.5", "is not a number of steps"},
		{"schedule.warmup=-3", "is not a number of steps"},
		{"schedule.branches=10", "has no effect"},
		{"train.batch_ramp=100 over 1K tokens", "whole number of micro-batches"},
		{"train.batch_ramp=512 over 1K tokens", "larger than the full"},
		{"train.batch_ramp=64 over 1M tokens", "train.steps = 40 read only"},
		{"train.batch_ramp=64 to 128", "is neither"},
		{"train.batch_ramp=64 until 1000, 128 until 500", "ends before it begins"},
		{"train.batch_ramp_lr=cube", "not known"},
		{"train.length_warmup=12 over 10", "cannot begin"},
		{"train.length_warmup=64 over 10", "cannot begin"},
		{"train.length_warmup=8 over 200%", "the run has 40"},
		{"train.length_warmup=8", "is not FROM over LENGTH"},
		{"train.noise_scale_every=-1", "too small"},
	} {
		_, err := config.Load(path, []string{c.override})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.override) {
			t.Errorf("%s: error %v does not say %q and the place", c.override, err, c.want)
		}
	}
	if _, err := config.Load(path, []string{"train.noise_scale_every=1", "train.micro_batch=8"}); err == nil ||
		!strings.Contains(err.Error(), "is one micro-batch") {
		t.Errorf("a noise scale from one micro-batch: %v", err)
	}
	if c, err := config.Load(path, []string{"schedule.name=wsds"}); err != nil ||
		!slices.Equal(c.Branches(), []int{c.Train.Steps / 4, c.Train.Steps / 2, c.Train.Steps}) {
		t.Errorf("wsds alone: %v; want branches at 25%%, 50%%", err)
	}
	if c, err := config.Load(path, []string{"train.noise_scale_every=1"}); err != nil || c.Train.MicroBatch != 4 {
		t.Errorf("a noise scale alone: %v; want micro-batches of 4 of the 8 sequences", err)
	}
	if _, err := config.Load(path, []string{"schedule.name=wsds", "schedule.branches=20, 22",
		"schedule.decay_fraction=0.5"}); err == nil || !strings.Contains(err.Error(), "begins to decay before") {
		t.Errorf("branches that overlap: %v", err)
	}
}

// A run that is restored before its first update continues at the beginning of its schedule.
func TestRestoredBeforeTheFirstUpdate(t *testing.T) {
	cfg := with(t, "random", "model.vocab=64", "train.batch_ramp=64 over 1000 tokens", "schedule.warmup=10")
	tr := trainerOf(t, cfg, 1)
	tr.progress = Position{Step: 2, Sample: 4, Tokens: 128} // both steps were skipped
	want := tr.ramps.Next(tr.progress)
	if err := tr.Restore(tr.State()); err != nil {
		t.Fatal(err)
	}
	if got := tr.ramps.Next(tr.progress); got != want {
		t.Errorf("the next step is %+v, without a stop %+v", got, want)
	}
}

// Steps whose update is skipped are read and counted, but neither the schedule nor the token count it goes by
// advances.
func TestSkippedStepsDoNotAdvanceTheSchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Ramps{
			batch: schedule.BatchRamp{
				Stages: []schedule.Stage{{From: 64, To: 256, Until: rapid.IntRange(1, 4000).Draw(t, "until")}},
				Full:   256, Unit: 32,
			},
			length: schedule.LengthRamp{From: 8, Full: 32, Steps: rapid.IntRange(1, 30).Draw(t, "steps")},
		}
		var p, clean Position // clean is of a run that saw only what was applied, in batches of the same sizes
		for range 40 {
			n := r.Next(p)
			if want := r.batch.Tokens(p.Step + 1); int64(want) != p.Tokens+n.Tokens {
				t.Fatalf("after step %d: %d tokens, the ramp has %d", p.Step+1, p.Tokens+n.Tokens, want)
			}
			if n.Position != int(clean.Tokens+n.Tokens) {
				t.Fatalf("step %d: the schedule stands at %d, %d tokens were applied with this step",
					p.Step+1, n.Position, clean.Tokens+n.Tokens)
			}
			p.Step, p.Tokens = p.Step+1, p.Tokens+n.Tokens
			if rapid.Bool().Draw(t, "applied") {
				p.Updates, p.Applied, clean.Tokens = p.Updates+1, p.Applied+n.Tokens, clean.Tokens+n.Tokens
			}
		}
	})
}
