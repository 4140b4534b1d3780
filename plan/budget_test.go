package plan

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"anneal/config"
	"anneal/device"
)

// budgeted derives a run from a budget on a machine that makes 300 GFLOP/s.
func budgeted(t *testing.T, length time.Duration, memory int64, overrides ...string) (
	*config.Config, *Budgeted, error) {
	t.Helper()
	return budgetedAt(t, 3e11, length, memory, overrides...)
}

// budgetedAt is budgeted on a machine that makes so many FLOPs per second.
func budgetedAt(t *testing.T, flops float64, length time.Duration, memory int64, overrides ...string) (
	*config.Config, *Budgeted, error) {
	t.Helper()
	return budgetedWith(t, func(token float64) float64 { return flops / (token + 3e6) }, length, memory, overrides...)
}

// budgetedWith is budgeted on a machine that makes so many tokens per second of so many FLOPs each.
func budgetedWith(t *testing.T, speed func(token float64) float64, length time.Duration, memory int64,
	overrides ...string) (*config.Config, *Budgeted, error) {
	t.Helper()
	return budgetedOn(t, Text{Tokens: 20e6, Bytes: 60e6, Vocab: 4096}, speed, length, memory, overrides...)
}

// budgetedOn is budgetedWith for a text.
func budgetedOn(t *testing.T, text Text, speed func(token float64) float64, length time.Duration, memory int64,
	overrides ...string) (*config.Config, *Budgeted, error) {
	t.Helper()
	plan := func(cfg *config.Config) (*Plan, error) {
		p, err := For(cfg, device.Null{})
		if err == nil && memory > 0 {
			p.Available, p.Fits = memory, p.Bytes() <= memory
		}
		return p, err
	}
	b := Budget{
		Time: length, Data: text, Threads: 6, Plan: plan,
		Speed: func(cfg *config.Config) (float64, string, error) {
			p, err := For(cfg, device.Null{})
			if err != nil {
				return 0, "", err
			}
			return speed(p.FLOPsPerToken), "a test", nil
		},
	}
	var r *Budgeted
	cfg, err := config.Sources{Overrides: append([]string{"data.path=none"}, overrides...), Planning: true,
		Complete: func(c *config.Config) (err error) {
			r, err = b.Derive(c)
			return err
		}}.Load()
	return cfg, r, err
}

func TestMoreTimeNeverMakesASmallerModelOrFewerTokensOfASize(t *testing.T) {
	dim, tokens, loss := 0, int64(0), 99.0
	first := 0
	for _, length := range []time.Duration{10 * time.Second, time.Minute, 3 * time.Minute, 10 * time.Minute,
		11 * time.Minute, 30 * time.Minute, 2 * time.Hour} {
		cfg, r, err := budgeted(t, length, 0)
		if err != nil {
			t.Fatal(length, err)
		}
		switch {
		case cfg.Model.Dim < dim:
			t.Errorf("%s: width %d after %d", length, cfg.Model.Dim, dim)
		case cfg.Model.Dim == dim && cfg.Tokens() < tokens:
			t.Errorf("%s: %d tokens after %d", length, cfg.Tokens(), tokens)
		case r.Predicted.BitsPerByte > loss:
			t.Errorf("%s: %.3f bits per byte after %.3f", length, r.Predicted.BitsPerByte, loss)
		case r.Predicted.Seconds > length.Seconds():
			t.Errorf("%s: predicted to take %.0f s", length, r.Predicted.Seconds)
		}
		dim, tokens, loss = cfg.Model.Dim, cfg.Tokens(), r.Predicted.BitsPerByte
		if first == 0 {
			first = dim
		}
	}
	if dim == first {
		t.Errorf("two hours choose width %d, as ten seconds do", dim)
	}
}

// A text whose tokens stand for more bytes has fewer bits per byte; the vocabulary of the tokens is taken out.
func TestTheLevelOfAText(t *testing.T) {
	for _, c := range []struct {
		text Text
		want float64
	}{
		{Text{Tokens: 100, Bytes: 263, Vocab: 4096}, 1},
		{Text{Tokens: 100, Bytes: 526, Vocab: 4096}, 0.5},
		{Text{Tokens: 300, Bytes: 1052, Vocab: 65536}, 1},
		{Text{Tokens: 100, Vocab: 4096}, 1},
	} {
		if got := c.text.level(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: level %v, want %v", c.text, got, c.want)
		}
	}
}

// A short text, however often it is read, needs no large model: the search for one ends.
func TestAShortTextNeedsNoLargeModel(t *testing.T) {
	for tokens, most := range map[int64]int{1000: 128, 100_000: 192, 2_000_000: 512} {
		tried := 0
		cfg, _, err := budgetedOn(t, Text{Tokens: tokens, Bytes: 3 * tokens, Vocab: 512}, func(token float64) float64 {
			tried++
			return 3e11 / (token + 3e6)
		}, 8*time.Hour, 0)
		if err != nil || cfg.Model.Dim > most || tried > 30 {
			t.Errorf("%d tokens: width %d of at most %d, %d sizes tried: %v", tokens, cfg.Model.Dim, most, tried, err)
		}
	}
}

func TestGivenKeysStayAndTheOthersFollow(t *testing.T) {
	cfg, r, err := budgeted(t, 10*time.Minute, 0, "model.dim=384", "train.batch_tokens=8192", "optimizer.name=adamw")
	if err != nil {
		t.Fatal(err)
	}
	if m := cfg.Model; m.Dim != 384 || m.Layers != 8 || m.Heads != 6 || cfg.Train.BatchTokens != 8192 ||
		cfg.Optimizer.Name != "adamw" || fmt.Sprintf("%.5f", cfg.Optimizer.LR) != "0.00269" {
		t.Errorf("%d layers of %d with %d heads, batch %d, %s at %g", m.Layers, m.Dim, m.Heads, cfg.Train.BatchTokens,
			cfg.Optimizer.Name, cfg.Optimizer.LR)
	}
	for _, d := range r.Derived {
		if d.Key == "model.dim" || d.Key == "train.batch_tokens" || d.Key == "optimizer.name" {
			t.Errorf("%s was given, and is derived", d.Key)
		}
		if rule := cfg.Origin(d.Key).Rule; d.Rule == "" || d.Source == "" || !strings.Contains(rule, d.Rule) {
			t.Errorf("%+v, and explain says %q", d, rule)
		}
		if d.Key == "train.steps" && d.Value != strconv.Itoa(cfg.Train.Steps) {
			t.Errorf("steps %s, trained %d", d.Value, cfg.Train.Steps)
		}
	}
}

// A text that is short for the time is read a few times and not more, in smaller steps, unless the steps are given.
func TestAShortTextIsReadAFewTimes(t *testing.T) {
	for _, c := range []struct {
		tokens    int64
		overrides []string
		enough    bool
		epochs    float64
		batch     int
	}{
		{10_000, nil, true, 2, 256}, {140_000, nil, true, 2, 1024}, {560_000, nil, true, 4, 2048},
		{20e6, nil, false, 0, 4096}, {140_000, []string{"train.steps=5000"}, false, 0, 2048},
		{140_000, []string{"train.batch_tokens=4096"}, true, 2, 4096},
		{1300, []string{"train.batch_tokens=8192"}, true, 63, 8192}, // ten steps at least
	} {
		cfg, r, err := budgetedOn(t, Text{Tokens: c.tokens, Bytes: 3 * c.tokens, Vocab: 4096},
			func(token float64) float64 { return 3e11 / (token + 3e6) }, time.Minute, 0, c.overrides...)
		if err != nil {
			t.Fatal(c, err)
		}
		if epochs := float64(cfg.Tokens()) / float64(c.tokens); r.ReadsEnough != c.enough ||
			cfg.Train.BatchTokens != c.batch || c.enough && math.Abs(epochs-c.epochs) > 0.05 ||
			c.enough != (r.MostSteps == cfg.Train.Steps) {
			t.Errorf("%d tokens, %v: read %.1f times in %d steps of %d, at most %d, and that is enough: %v", c.tokens,
				c.overrides, epochs, cfg.Train.Steps, cfg.Train.BatchTokens, r.MostSteps, r.ReadsEnough)
		}
	}
}

// A small source that is read often does not end the run on a mixture; evaluations take what a short text leaves.
func TestAMixtureIsReadByAllItsTokens(t *testing.T) {
	speed := func(float64) float64 { return 20_000 }
	_, r, err := budgetedOn(t, Text{Tokens: 5000, All: 20e6, Bytes: 15e3, Vocab: 4096}, speed, time.Minute, 0)
	if err != nil || r.ReadsEnough {
		t.Errorf("a mixture of 20M tokens is read enough in a minute: %v", err)
	}
	for seconds := 12.0; seconds < 200; seconds *= 1.3 {
		_, r, err := budgetedOn(t, Text{Tokens: 100_000, Bytes: 3e5, Vocab: 4096}, speed,
			time.Duration(seconds*float64(time.Second)), 0)
		if err != nil || r.Predicted.Seconds > seconds {
			t.Errorf("%.0f s: predicted to take %.1f s, enough read: %v; %v", seconds, r.Predicted.Seconds,
				r.ReadsEnough, err)
		}
	}
}

// A run of a given width and length is the same on any machine.
func TestGivenStepsDoNotDependOnTheSpeed(t *testing.T) {
	var want string
	for _, flops := range []float64{1e10, 3e11, 3e13} {
		cfg, r, err := budgetedAt(t, flops, 3*time.Minute, 0, "model.dim=128", "train.steps=500")
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%+v, %+v, %+v, %+v, %+v", cfg.Model, cfg.Train, cfg.Optimizer, cfg.Schedule, cfg.Parallel)
		if want == "" {
			want = got
		}
		if got != want || r.Derives("train.steps") {
			t.Errorf("at %g FLOP/s the run is\n%s\nat 1e10 FLOP/s\n%s", flops, got, want)
		}
	}
}

// What is predicted ends where train.minutes ends the run, and nowhere if the run has no limit.
func TestThePredictionEndsWhereTheRunDoes(t *testing.T) {
	predict := func(minutes string) Predicted {
		_, r, err := budgetedAt(t, 1e10, 3*time.Minute, 0, "model.dim=128", "train.steps=2000", minutes)
		if err != nil {
			t.Fatal(err)
		}
		return r.Predicted
	}
	short, long, free := predict("train.minutes=1"), predict("train.minutes=20"), predict("train.minutes=0")
	if short.Seconds != 60 || long.Seconds != 1200 || free.Seconds < 1300 {
		t.Errorf("%.0f, %.0f and %.0f s, want 60, 1200 and more", short.Seconds, long.Seconds, free.Seconds)
	}
	if !(short.BitsPerByte > long.BitsPerByte && long.BitsPerByte > free.BitsPerByte) {
		t.Errorf("%.3f, %.3f and %.3f bits per byte", short.BitsPerByte, long.BitsPerByte, free.BitsPerByte)
	}
}

// A model of half a head is chosen where one of a whole head would read too few tokens to learn to copy, and only
// there: in two minutes it reads little more than 2M here.
func TestHalfAHeadIsForRunsOfFewTokens(t *testing.T) {
	for _, c := range []struct {
		length time.Duration
		want   int
	}{{time.Minute, 32}, {2 * time.Minute, 64}, {3 * time.Minute, 64}} {
		cfg, _, err := budgetedWith(t, func(token float64) float64 { return 6e10 / token }, c.length, 0)
		if err != nil || cfg.Model.Dim != c.want || cfg.Model.Heads != 1 {
			t.Errorf("%s: width %d with %d heads, want %d with one; %v", c.length, cfg.Model.Dim, cfg.Model.Heads,
				c.want, err)
		}
	}
}

// A long context pays where enough tokens are read.
func TestTheContextFollowsTheTokens(t *testing.T) {
	for _, c := range []struct {
		length    time.Duration
		overrides []string
		want      int
	}{
		{time.Minute, nil, 256},
		{10 * time.Minute, nil, 512},
		{10 * time.Minute, []string{"model.context=128"}, 128},
	} {
		cfg, _, err := budgeted(t, c.length, 0, c.overrides...)
		if err != nil || cfg.Model.Context != c.want ||
			cfg.Tokens() >= 6e6 != (c.want != 256) && len(c.overrides) == 0 {
			t.Errorf("%s, %v: context %d, want %d: %v", c.length, c.overrides, cfg.Model.Context, c.want, err)
		}
	}
}

func TestBudgetFitsMemory(t *testing.T) {
	free, _, err := budgeted(t, 10*time.Hour, 0)
	if err != nil {
		t.Fatal(err)
	}
	const memory = 200 << 20
	cfg, r, err := budgeted(t, 10*time.Hour, memory)
	if err != nil || r.Predicted.MemoryBytes > memory || cfg.Model.Dim >= free.Model.Dim {
		t.Errorf("%+v, width %d, without the limit %d, %v", r, cfg.Model.Dim, free.Model.Dim, err)
	}
	if _, _, err := budgeted(t, time.Hour, 1<<20); err == nil || !strings.Contains(err.Error(), "does not fit") {
		t.Errorf("in one MiB: %v", err)
	}
}

func TestThreadsBecomeRanksThatShareTheSequencesOfAStep(t *testing.T) {
	for _, c := range []struct {
		overrides    []string
		ranks, micro int
	}{
		{nil, 2, 8}, // of 16 sequences and 6 threads
		{[]string{"train.batch_tokens=6144"}, 6, 4},
		{[]string{"train.batch_tokens=1280"}, 1, 5},
		{[]string{"parallel.ranks=1"}, 1, 16},
		{[]string{"train.micro_batch=2"}, 2, 2},
	} {
		cfg, _, err := budgeted(t, time.Minute, 0, c.overrides...)
		if err != nil {
			t.Fatal(c.overrides, err)
		}
		if cfg.Parallel.Ranks != c.ranks || cfg.Train.MicroBatch != c.micro || cfg.Parallel.Zero != min(c.ranks-1, 1) {
			t.Errorf("%v: %d ranks with %d sequences, zero %d, want %d with %d", c.overrides, cfg.Parallel.Ranks,
				cfg.Train.MicroBatch, cfg.Parallel.Zero, c.ranks, c.micro)
		}
	}
}

// Ranks that are given, by hand or by a launcher, stay: each has a sequence of a step at least, also where their number
// divides nothing. Another process that applies what was derived has the same configuration.
func TestGivenRanksShareTheSequencesOfAStep(t *testing.T) {
	for _, ranks := range []int{2, 3, 32} {
		given := []string{fmt.Sprint("parallel.ranks=", ranks), "model.dim=64", "data.path=none"}
		cfg, r, err := budgeted(t, time.Minute, 0, given...)
		if err != nil {
			t.Fatalf("%d ranks: %v", ranks, err)
		}
		sequences := cfg.Train.BatchTokens / cfg.Model.Context
		if cfg.Parallel.Ranks != ranks || cfg.Parallel.Zero != 1 || sequences/cfg.Train.MicroBatch < ranks {
			t.Errorf("%d ranks: %d with ZeRO %d, micro-batches of %d of %d sequences",
				ranks, cfg.Parallel.Ranks, cfg.Parallel.Zero, cfg.Train.MicroBatch, sequences)
		}
		other, err := config.Sources{Overrides: given, Planning: true, Complete: func(c *config.Config) error {
			r.Apply(c)
			return nil
		}}.Load()
		if err != nil || string(other.YAML()) != string(cfg.YAML()) {
			t.Errorf("%d ranks: another process has another configuration: %v", ranks, err)
		}
	}
}

func TestBudgetForLessThanAStepIsRefused(t *testing.T) {
	_, _, err := budgeted(t, time.Millisecond, 0)
	if !errors.Is(err, ErrBudget) || !strings.Contains(err.Error(), "--budget ") {
		t.Error(err)
	}
}

// Where a step of a large batch is possible only with the smallest width, a little more time does not make it
// impossible.
func TestALittleMoreTimeKeepsTheStep(t *testing.T) {
	speed := func(token float64) float64 { return 3e6 / (1 + token/3e6) }
	for _, length := range []time.Duration{1800, 1850, 1900, 1950, 2000} {
		_, _, err := budgetedWith(t, speed, length*time.Millisecond, 0, "train.batch_tokens=2599936")
		if err != nil {
			t.Errorf("%v: %v", length*time.Millisecond, err)
		}
	}
}
