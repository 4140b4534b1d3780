package bench

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"anneal/comm/local"
	"anneal/config"
)

// ensemble has rank 0 of two do something, and returns what the other ends with.
func ensemble(t *testing.T, leads func(Ensemble)) (value string, err error) {
	t.Helper()
	world := local.New(2, local.Options{})
	var all sync.WaitGroup
	all.Go(func() {
		var text []byte
		if text, err = (Ensemble{world[1]}).Follow(context.Background()); err == nil {
			err = json.Unmarshal(text, &value)
		}
	})
	leads(Ensemble{world[0]})
	all.Wait()
	return value, err
}

// smallestSteps is a configuration with steps of a millisecond.
func smallestSteps(t *testing.T, more ...string) *config.Config {
	t.Helper()
	cfg, err := config.Sources{Overrides: append([]string{"data.path=none", "model.vocab=64", "model.dim=16",
		"model.heads=1", "model.layers=1", "model.context=16", "train.batch_tokens=64", "train.micro_batch=1",
		"train.steps=4", "parallel.ranks=2", "threads=1"}, more...), Planning: true}.Load()
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// All ranks make the steps of what rank 0 says, as often as it likes, and get what it ends with.
func TestAnEnsembleMeasuresWhatRankZeroSays(t *testing.T) {
	value, err := ensemble(t, func(e Ensemble) {
		for range 2 {
			if speed, err := e.Speed(context.Background(), smallestSteps(t)); err != nil || !(speed > 0) {
				t.Errorf("%v tokens/s, %v", speed, err)
			}
		}
		if err := e.End("derived"); err != nil {
			t.Error(err)
		}
	})
	if value != "derived" || err != nil {
		t.Errorf("the other rank ends with %q, %v", value, err)
	}
}

// A rank that cannot make steps ends the others' wait for it.
func TestAnEnsembleEndsWithARankThatFails(t *testing.T) {
	broken, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := ensemble(t, func(e Ensemble) {
		if speed, err := e.Speed(broken, smallestSteps(t)); err == nil {
			t.Errorf("%v tokens/s without a step", speed)
		}
	})
	if err == nil {
		t.Error("the other rank goes on")
	}
}

// A ramp begins with small batches and a warmup with short rows, whose speed is not that of the run.
func TestSpeedIsThatOfWholeSteps(t *testing.T) {
	of := func(more ...string) float64 {
		cfg := smallestSteps(t, append([]string{"train.batch_tokens=2048", "train.micro_batch=1", "parallel.ranks=1",
			"train.steps=1000"}, more...)...)
		speed, err := Speed(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return speed
	}
	plain := of()
	for _, ramp := range []string{"train.batch_ramp=16 over 100000 tokens", "train.length_warmup=8 over 50%"} {
		if speed := of(ramp); speed > 4*plain {
			t.Errorf("%s: %.0f tokens/s, without it %.0f", ramp, speed, plain)
		}
	}
}

// A step's share of what an optimizer does now and then is measured with it.
func TestSpeedIsThatOfAPeriod(t *testing.T) {
	for name, want := range map[string]int{
		"optimizer.name=adamw": 1, "optimizer.name=sophia": 10, "optimizer.name=soap": 10,
	} {
		if got := periodOf(smallestSteps(t, name).Optimizer); got != want {
			t.Errorf("%s: a period of %d steps, want %d", name, got, want)
		}
	}
	if got := periodOf(smallestSteps(t, "optimizer.name=sophia", "optimizer.hessian_every=1000").Optimizer); got != 1 {
		t.Errorf("a period of %d steps", got)
	}
}

func TestLargeModelsAreTimedForOneStep(t *testing.T) {
	large := []string{"model.dim=1024", "model.heads=16", "model.layers=24", "train.batch_tokens=4096"}
	for want, more := range map[int][]string{4: nil, 1: large} {
		if steps, err := speedSteps(smallestSteps(t, more...)); err != nil || steps != want {
			t.Errorf("%v: %d steps, want %d: %v", more, steps, want, err)
		}
	}
}
