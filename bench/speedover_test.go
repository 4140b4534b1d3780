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

func TestLargeModelsAreTimedForOneStep(t *testing.T) {
	large := []string{"model.dim=1024", "model.heads=16", "model.layers=24", "train.batch_tokens=4096"}
	for want, more := range map[int][]string{4: nil, 1: large} {
		if steps, err := speedSteps(smallestSteps(t, more...)); err != nil || steps != want {
			t.Errorf("%v: %d steps, want %d: %v", more, steps, want, err)
		}
	}
}
