package run

import (
	"errors"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/train"
)

// What is planned is what the arenas of a run hold after steps and evaluation, for each kind of model and memory that
// a line of config chooses.
func TestTheFootprintIsWhatARunTakes(t *testing.T) {
	for _, set := range [][]string{
		{}, {"precision=fp32", "model.kv_heads=2", "model.qk_norm=true"}, {"precision=fp8", "fp8.scaling=delayed"},
		{"precision=bf16_sr"},
		{"memory.recompute=sqrt", "optimizer.name=muon"}, {"memory.recompute=selective", "optimizer.name=adam8bit"},
		{"model.dropout=0.1", "optimizer.name=sophia"}, {"model.family=anneal", "optimizer.name=muon"},
		{"model.family=anneal", "model.value_embeddings=all", "memory.recompute=sqrt", "precision=fp16"},
		{"model.family=anneal", "model.bigram=100", "model.smear=true", "memory.recompute=every_layer"},
		{"average.ema=0.9", "precision=bf16_sr"}, {"memory.offload=optimizer"}, {"optimizer.masters=f64"},
		{"memory.offload=optimizer, checkpoints", "memory.recompute=budget:600KiB"},
		{"memory.offload=checkpoints", "memory.recompute=every_layer", "memory.recompute_inputs=bf16"},
		{"model.kv_lora_rank=16", "memory.recompute=selective", "optimizer.name=muon"},
		{"model.family=gemma2", "model.attention_sinks=true"},
		{"model.attention=delta:gated,full", "model.short_conv=4", "memory.recompute=selective", "optimizer.name=muon"},
		{"model.attention=longformer:8:4,window:8", "model.longformer_global_projections=true", "model.qk_norm=true"},
	} {
		cfg, err := config.Load("", append([]string{
			"data.path=x", "model.vocab=300", "model.layers=4", "model.dim=64", "model.heads=4", "model.context=64",
			"train.batch_tokens=256",
		}, set...))
		if err != nil {
			t.Fatal(err)
		}
		trial, err := NewTrial(cfg, dataset.NewRandom(300, 64, 1), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer trial.Close()
		f, err := train.MeasureRun(cfg, trial.dev)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := trial.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := trial.Look(); err != nil { // a forward pass alone keeps less, and needs more at one time
			t.Fatal(err)
		}
		if len(f.Arenas) != len(trial.trainer.Arenas()) {
			t.Errorf("%v: %d arenas, %d planned", set, len(trial.trainer.Arenas()), len(f.Arenas))
		}
		for _, a := range trial.trainer.Arenas() {
			if got, want := int64(a.Peak()), f.Bytes(a.Name()); got != want {
				t.Errorf("%v: %s holds %d bytes, %d planned", set, a.Name(), got, want)
			}
		}
		copied := int64(0)
		for _, x := range trial.trainer.Tensors() {
			copied += int64(x.Value.Bytes())
		}
		if planned := f.CheckpointCopy(); planned < copied || planned > copied+f.Tables+copied/50 {
			t.Errorf("%v: a checkpoint holds %d bytes, %d planned", set, copied, planned)
		}
	}
}

// A trainer starts on a device with exactly as much free memory as the footprint's total, and with a byte less it is
// refused by that same figure.
func TestTheFootprintDecidesWhetherARunStarts(t *testing.T) {
	like := farDevice(t)
	for _, set := range [][]string{
		{}, {"average.ema=0.9", "precision=bf16_sr"}, {"optimizer.name=muon", "memory.recompute=sqrt"},
		{"model.attention=window:16", "train.micro_batch=1", "precision=fp32"},
	} {
		cfg, err := config.Load("", append([]string{
			"device=cuda", "data.path=x", "model.vocab=300", "model.layers=2", "model.dim=64", "model.heads=4",
			"model.context=64", "train.batch_tokens=256",
		}, set...))
		if err != nil {
			t.Fatal(err)
		}
		dev, err := train.OpenDevice(cfg, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		f, err := train.MeasureRun(cfg, dev)
		dev.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, less := range []int64{0, 1} {
			like.Free = f.Total() - less
			trial, err := NewTrial(cfg, dataset.NewRandom(300, 64, 1), nil)
			var refusal *train.MemoryError
			switch {
			case less == 0 && err != nil:
				t.Errorf("%v: refused with the %d bytes of its footprint: %v", set, f.Total(), err)
			case less == 1 && (!errors.As(err, &refusal) || refusal.Need != f.Total()):
				t.Errorf("%v: with a byte less than the %d of its footprint: %v", set, f.Total(), err)
			}
			if err == nil {
				trial.Close()
			}
		}
	}
}
