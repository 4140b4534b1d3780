package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"anneal/train/traintest"
)

func TestDivergenceNamesItsCause(t *testing.T) {
	for _, c := range []struct {
		nonFinite      int
		finite, spikes bool // which causes the text names
	}{{3, true, false}, {0, false, true}, {1, true, true}} {
		e := DivergedError{Step: 7, First: 5, Skips: 3, NonFinite: c.nonFinite, LR: 0.5, Dir: "runs/x", Saved: true}
		text := e.Error()
		if strings.Contains(text, "finite") != c.finite || strings.Contains(text, "guard.spike_z") != c.spikes {
			t.Errorf("%d of 3 not finite: %s", c.nonFinite, text)
		}
		for _, want := range []string{
			"step 7", "3 updates", "runs/x", "optimizer.lr than 0.5", "anneal rewind runs/x --to 4 --skip 5:7",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the text does not say %q: %s", want, text)
			}
		}
		e.Saved = false
		if text := e.Error(); !strings.Contains(text, "no checkpoint yet") ||
			!strings.Contains(text, "anneal rewind runs/x --to 0 --skip 5:7") {
			t.Errorf("without a checkpoint it says %s", text)
		}
	}
}

// A stop at the step at which a run diverges does not let it go on: evaluating, it would be saved there.
func TestADivergedRunIsNotSavedWhileItIsEvaluated(t *testing.T) {
	cfg := spikyConfig(traintest.Data(t))
	cfg.Guard.OnDivergence, cfg.Guard.Rewinds, cfg.Train.EvalEvery = "stop", 2, 1
	const many = 1 << 20
	whole := &countdown{context.Background(), many}
	_, err := Run(whole, Options{Config: cfg, Dir: filepath.Join(t.TempDir(), "run")})
	want := (*DivergedError)(nil)
	if !errors.As(err, &want) {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	_, err = Run(&countdown{context.Background(), many - whole.left - 2}, Options{Config: cfg, Dir: dir})
	if err == nil {
		_, err = Resume(context.Background(), Options{Dir: dir})
	}
	if got := (*DivergedError)(nil); !errors.As(err, &got) || got.Step != want.Step || got.Skips != want.Skips {
		t.Errorf("stopped and resumed it ends with %v, want %v", err, want)
	}
}

// A run that diverges while a checkpoint is written has that checkpoint, on any number of ranks.
func TestDivergenceNamesTheCheckpointUnderWay(t *testing.T) {
	data := traintest.Data(t)
	for ranks := 1; ranks <= 3; ranks++ {
		cfg := smallConfig(t, data, "precision=fp16", "loss_scale.dynamic=false", "loss_scale.init=1",
			"optimizer.lr=9e5", "optimizer.weight_decay=0", "guard.max_skips=1", "checkpoint.every=1",
			"schedule.warmup=0", fmt.Sprint("parallel.ranks=", ranks))
		dir := filepath.Join(t.TempDir(), "run")
		_, err := Run(context.Background(), Options{Config: cfg, Dir: dir, Threads: 3})
		away := (*DivergedError)(nil)
		if !errors.As(err, &away) || away.Step != 2 {
			t.Fatalf("%d ranks: %v, want a divergence at step 2", ranks, err)
		}
		if want := "rewind " + dir + " --to 1 --skip 2:2"; !strings.Contains(err.Error(), want) {
			t.Errorf("%d ranks: %v, want %s", ranks, err, want)
		}
	}
}
