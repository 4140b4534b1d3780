package train

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"anneal/comm"
	"anneal/config"
	"anneal/dataset"
	"anneal/device"
	"anneal/device/cpu"
	"anneal/model"
)

// What is recorded without computing is what a real step asks of the device.
func TestARecordedStepMakesTheCallsOfARealOne(t *testing.T) {
	for _, overrides := range [][]string{
		{"model.family=llama", "precision=bf16"},
		{"model.family=gpt2", "precision=fp32", "optimizer.name=adafactor"},
		{"model.family=llama", "precision=bf16", "optimizer.name=muon", "memory.recompute=every_layer"},
		{"model.family=llama", "precision=bf16", "optimizer.name=adam8bit", "average.ema=0.9"},
		{"model.family=llama", "precision=bf16", "optimizer.name=sophia", "optimizer.hessian_every=3"},
		{"model.family=llama", "precision=bf16", "guard.replay_every=3"},
	} {
		t.Run(fmt.Sprint(overrides), func(t *testing.T) {
			cfg := recordedConfig(t, overrides)
			real, err := cpu.New(1)
			if err != nil {
				t.Fatal(err)
			}
			defer real.Close()
			want := device.NewRecorder(real)
			trainer, err := New(cfg, want)
			if err != nil {
				t.Fatal(err)
			}
			defer trainer.Close()
			trainer.OnPhase = func(p Phase) { want.Phase = p.String() }
			clear(want.Calls) // initial weights
			src := dataset.NewRandom(cfg.Model.Vocab, cfg.Model.Context, 1)
			const steps = 3 // after which all that is not of every step has been done once
			for range steps {
				if _, err := trainer.Step(context.Background(), src); err != nil {
					t.Fatal(err)
				}
			}
			got, err := RecordStep(cfg, real, comm.Alone{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for c, tally := range want.Calls {
				if got.Calls[c] == nil || math.Abs(steps*got.Calls[c].Count-tally.Count) > 1e-9 {
					t.Errorf("%d steps make %+v %v times, the recorded one %+v", steps, c, tally.Count, got.Calls[c])
				}
			}
			for c := range got.Calls {
				if want.Calls[c] == nil {
					t.Errorf("only the recorded step makes %+v", c)
				}
			}
		})
	}
}

// The products of the calls are those of the model's own count.
func TestRecordedOperationsAreThoseOfTheModel(t *testing.T) {
	cfg := recordedConfig(t, []string{"model.family=llama", "precision=bf16"})
	got, err := RecordStep(cfg, device.Null{}, comm.Alone{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ops := 0.0
	for c, tally := range got.Calls {
		if strings.HasPrefix(c.Kernel, "MatMul") {
			ops += c.Ops * tally.Count
		}
	}
	policy, err := PolicyOf(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m := model.Outline(cfg.Model, policy)
	if want := m.FLOPsPerToken(0) * float64(cfg.Train.BatchTokens); math.Abs(ops-want) > 1e-9*want {
		t.Errorf("the calls have %.4g operations, the model counts %.4g", ops, want)
	}
}

// recordedConfig is a run of three micro-batches a step.
func recordedConfig(t *testing.T, overrides []string) *config.Config {
	t.Helper()
	list := append([]string{
		"model.layers=3", "model.dim=64", "model.heads=2", "model.context=128", "model.vocab=512",
		"train.micro_batch=2", "train.batch_tokens=768", "train.steps=10", "data.path=none", "threads=1",
	}, overrides...)
	cfg, err := config.Sources{Overrides: list, Planning: true}.Load()
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// Parameters that are not trained have no state: a recorded step leaves their bases out.
func TestARecordedStepLeavesOutWhatIsFrozen(t *testing.T) {
	for _, frozen := range [][]string{
		{"optimizer.patterns=layers.0.* lr_ratio=0"}, {"init.from=base", "model.lora_rank=4"},
	} {
		cfg := recordedConfig(t, append([]string{"model.family=llama", "optimizer.name=soap"}, frozen...))
		if _, err := RecordStep(cfg, device.Null{}, comm.Alone{}, nil); err != nil {
			t.Errorf("%v: %v", frozen, err)
		}
	}
}
