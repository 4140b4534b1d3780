package use

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"anneal/config"
	"anneal/nn"
	"anneal/run"
	"anneal/train"
	"anneal/train/traintest"
)

// reachable trains a few steps with positions and returns a run and its data.
func reachable(t *testing.T, positions string) (dir, data string) {
	t.Helper()
	cfg := traintest.Config(traintest.Data(t))
	dir = filepath.Join(t.TempDir(), "run")
	cfg.Train.Steps, cfg.Schedule.Warmup = 2, 1
	cfg.Model.Positions, cfg.Data.DocumentMask, cfg.Precision = schemes(positions), false, "fp32"
	mustRun(t, run.Options{Config: cfg, Dir: dir})
	return dir, cfg.Data.Path
}

func evaluateAt(t *testing.T, dir, data string, reach Reach, limit int) (train.EvalResult, int) {
	t.Helper()
	r, err := OpenWith(dir, OpenOptions{Threads: 1, Reach: reach})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	e, err := r.Evaluate(context.Background(), data, limit, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e, r.Context()
}

// Rows four times as long as those of training begin with such a row, which costs what it costs by itself; the
// intervals of positions add up to the whole.
func TestLongRowsAreScoredByPosition(t *testing.T) {
	dir, data := reachable(t, "rope,none")
	short, trained := evaluateAt(t, dir, data, Reach{}, 32)
	long, reached := evaluateAt(t, dir, data, Reach{Context: "4x"}, 128)
	if reached != 4*trained || short.Tokens != int64(trained) || long.Tokens != int64(reached) ||
		len(long.ByPosition) != 4 || short.ByPosition != nil {
		t.Fatalf("%d tokens at a context of %d, %d at %d with %d intervals",
			short.Tokens, trained, long.Tokens, reached, len(long.ByPosition))
	}
	if first := long.ByPosition[0]; first.Tokens != short.Tokens || first.Bytes != short.Bytes ||
		math.Abs(first.Loss-short.Loss) > 1e-5 {
		t.Errorf("the first interval is %+v, want that of a row by itself, %+v", first, short)
	}
	var sum train.PositionResult
	for i, p := range long.ByPosition {
		if p.From != i*trained || p.To != p.From+trained {
			t.Errorf("interval %d is [%d, %d)", i, p.From, p.To)
		}
		sum.Loss += p.Loss * float64(p.Tokens)
		sum.Tokens += p.Tokens
		sum.Bytes += p.Bytes
	}
	if mean := sum.Loss / float64(sum.Tokens); sum.Tokens != long.Tokens || sum.Bytes != long.Bytes ||
		math.Abs(mean-long.Loss) > 1e-6 {
		t.Errorf("intervals of %d tokens, %d bytes have the loss %v; the whole is %+v",
			sum.Tokens, sum.Bytes, mean, long)
	}
}

// A scaling for evaluation slows the positions of the run, whose context is the original one; a factor of 1 changes
// nothing.
func TestScalingForEvaluation(t *testing.T) {
	dir, data := reachable(t, "rope")
	plain, reached := evaluateAt(t, dir, data, Reach{Context: "2x"}, 64)
	same, _ := evaluateAt(t, dir, data, Reach{Context: "2x", RopeScaling: "yarn:1"}, 64)
	yarn, _ := evaluateAt(t, dir, data, Reach{Context: "2x", RopeScaling: "yarn:2"}, 64)
	if same.Loss != plain.Loss || yarn.Loss == plain.Loss {
		t.Errorf("the loss is %v, with yarn:1 %v, with yarn:2 %v", plain.Loss, same.Loss, yarn.Loss)
	}
	r, err := OpenWith(dir, OpenOptions{Threads: 1, Reach: Reach{Context: "2x", RopeScaling: "yarn:2:fast=8"}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c, want := r.Model.Config, nn.RoPEScaling{Kind: "yarn", Factor: 2, Fast: 8, Slow: 1}
	if c.RopeScaling != want || c.RopeOriginalContext != reached/2 {
		t.Errorf("the model is scaled by %+v from %d on, want %+v from %d on",
			c.RopeScaling, c.RopeOriginalContext, want, reached/2)
	}
}

// With latent attention a list of longrope has a number for each pair that turns, not for each pair of a head.
func TestLongRoPEForEvaluationCountsThePairsThatTurn(t *testing.T) {
	cfg := traintest.Config(traintest.Data(t))
	dir := filepath.Join(t.TempDir(), "run")
	cfg.Train.Steps, cfg.Schedule.Warmup, cfg.Precision = 2, 1, "fp32"
	cfg.Model.KVLoraRank, cfg.Model.KVHeads, cfg.Model.RopeHeadDim = 8, cfg.Model.Heads, 4
	mustRun(t, run.Options{Config: cfg, Dir: dir})
	evaluateAt(t, dir, cfg.Data.Path, Reach{RopeScaling: "longrope:2:long=1,2"}, 64)
	whole := "longrope:2:long=1" + strings.Repeat(",1", cfg.Model.HeadDim/2-1)
	_, err := OpenWith(dir, OpenOptions{Threads: 1, Reach: Reach{RopeScaling: whole}})
	if p := new(config.Problem); !errors.As(err, p) || p.Key != "model.rope_scaling" {
		t.Errorf("%s: %v", whole, err)
	}
}

// A table of learned positions can be read in part, not beyond its end.
func TestReachOfLearnedPositions(t *testing.T) {
	dir, data := reachable(t, "learned")
	whole, trained := evaluateAt(t, dir, data, Reach{}, 32)
	if half, n := evaluateAt(t, dir, data, Reach{Context: "0.5x"}, 32); n != trained/2 || half.Tokens != whole.Tokens ||
		half.Loss == whole.Loss {
		t.Errorf("half of %d tokens is %d, %+v", trained, n, half)
	}
	for _, reach := range []Reach{{Context: "2x"}, {Context: "4096"}} {
		_, err := OpenWith(dir, OpenOptions{Threads: 1, Reach: reach})
		if err == nil || !strings.Contains(err.Error(), "positions that the model has learned") {
			t.Errorf("%+v: %v", reach, err)
		}
	}
}

// What goes by the length of a row is made for the length that is read: a window of a model that was trained on rows
// shorter than it, and slopes of ALiBi. A token that sees what it saw in training costs the same.
func TestPatternsReachWithTheContext(t *testing.T) {
	cfg := traintest.Config(traintest.Data(t))
	dir := filepath.Join(t.TempDir(), "run")
	cfg.Train.Steps, cfg.Schedule.Warmup, cfg.Data.DocumentMask, cfg.Precision = 2, 1, false, "fp32"
	cfg.Model.Positions, cfg.Model.Attention = schemes("alibi"), seen("window:32")
	mustRun(t, run.Options{Config: cfg, Dir: dir})
	short, trained := evaluateAt(t, dir, cfg.Data.Path, Reach{}, 32)
	long, _ := evaluateAt(t, dir, cfg.Data.Path, Reach{Context: "3x"}, 96)
	if len(long.ByPosition) != 3 || trained != 32 || math.Abs(long.ByPosition[0].Loss-short.Loss) > 1e-5 {
		t.Fatalf("in rows of %d the loss is %v, in longer ones %+v", trained, short.Loss, long.ByPosition)
	}
	full := filepath.Join(t.TempDir(), "full") // the same weights, as no layer saw less in training
	cfg.Model.Attention = seen("full")
	mustRun(t, run.Options{Config: cfg, Dir: full})
	whole, _ := evaluateAt(t, full, cfg.Data.Path, Reach{Context: "3x"}, 96)
	for i, p := range whole.ByPosition {
		if d := math.Abs(p.Loss - long.ByPosition[i].Loss); (d < 1e-5) != (i == 0) {
			t.Errorf("positions from %d: the loss is %v in a window, %v with all keys",
				p.From, long.ByPosition[i].Loss, p.Loss)
		}
	}
}

func TestReachThatCannotWork(t *testing.T) {
	dir, _ := reachable(t, "none")
	for says, reach := range map[string]Reach{
		"has no effect":                            {RopeScaling: "yarn:4"},
		"from 1 to 1048576":                        {RopeScaling: "yarn:0.1"},
		"unknown scaling":                          {RopeScaling: "four"},
		"\"1\" is not a context":                   {Context: "1"},
		"\"x\" is not a context":                   {Context: "x"},
		"\"NaN\" is not a context":                 {Context: "NaN"},
		"\"-4x\" is not a context":                 {Context: "-4x"},
		"\"0.3x\" is not a context":                {Context: "0.3x"},
		"\"99999x\" is not a context of 2 to 1048": {Context: "99999x"},
	} {
		_, err := OpenWith(dir, OpenOptions{Threads: 1, Reach: reach})
		var p config.Problem
		if !errors.As(err, &p) || !strings.Contains(p.Message, says) || p.Try == "" {
			t.Errorf("%+v: %v, want a problem with %q", reach, err, says)
		}
	}
}
