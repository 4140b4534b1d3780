package train

import (
	"testing"

	"anneal/config"
	"anneal/dataset"
)

// What is planned is what the arenas of a run hold after steps and evaluation, for each kind of model and memory that
// a line of config chooses.
func TestThePlanIsWhatARunTakes(t *testing.T) {
	for _, set := range [][]string{
		{}, {"precision=fp32", "model.kv_heads=2", "model.qk_norm=true"}, {"precision=fp8", "fp8.scaling=delayed"}, {"precision=bf16_sr"},
		{"memory.recompute=sqrt", "optimizer.name=muon"}, {"memory.recompute=selective", "optimizer.name=adam8bit"},
		{"model.dropout=0.1", "optimizer.name=sophia"}, {"model.family=anneal", "optimizer.name=muon"},
		{"model.family=anneal", "model.value_embeddings=all", "memory.recompute=sqrt", "precision=fp16"},
	} {
		cfg, err := config.Load("", append([]string{
			"data.path=x", "model.vocab=300", "model.layers=4", "model.dim=64", "model.heads=4", "model.context=64", "train.batch_tokens=256",
		}, set...))
		if err != nil {
			t.Fatal(err)
		}
		p, err := PlanOf(cfg)
		if err != nil {
			t.Fatal(err)
		}
		trial, err := NewTrial(cfg, dataset.NewRandom(300, 64, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer trial.Close()
		for range 2 {
			if _, err := trial.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := trial.Look(); err != nil { // a forward pass alone keeps less, and needs more at one time
			t.Fatal(err)
		}
		planned := map[string]int64{
			"parameters": p.Memory.Bytes("parameters") + p.Memory.Bytes("tables"), "gradients": p.Memory.Bytes("gradients"),
			"optimizer state": p.Memory.Bytes("optimizer state"), "activations": p.Memory.Bytes("activations"),
			"scratch": p.Memory.Bytes("scratch"), "batch": p.Memory.Bytes("batch"),
		}
		for _, a := range trial.trainer.arenas {
			want, known := planned[a.Name()]
			if got := int64(a.Peak()); !known || got != want {
				t.Errorf("%v: %s holds %d bytes, %d planned", set, a.Name(), got, want)
			}
		}
	}
}
