package train

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"testing"

	"anneal/internal/filetest"
	"anneal/model"
	"anneal/train/traintest"
)

// With SGD an update is the rate times the gradient. Measuring changes no bit.
func TestUpdateRatiosAreThoseOfSGD(t *testing.T) {
	settings := []string{"precision=fp64", "train.clip=0", "optimizer.weight_decay=0", "optimizer.momentum=0"}
	tr, src := optimizerTrainer(t, "sgd", append(settings, "train.norms_every=2")...)
	plain, _ := optimizerTrainer(t, "sgd", append(settings, "train.norms_every=0")...)
	for step := range 4 {
		e, err := tr.Step(context.Background(), src)
		if err != nil {
			t.Fatal(err)
		}
		steps(t, plain, src, 1)
		if step%2 == 0 {
			if e.UpdateRatios.Layers != nil {
				t.Errorf("step %d has ratios, which are due every second step", step+1)
			}
			continue
		}
		squares := make([]float64, 2)
		for _, p := range tr.Model().Params() {
			if l := model.LayerOf(p); l >= 0 {
				for i := range p.Value.Len() {
					squares[l] += p.Value.Float64(i) * p.Value.Float64(i)
				}
			}
		}
		for l, got := range e.UpdateRatios.Layers {
			want := e.LR * float64(e.GradNorms.Layers[l]) / math.Sqrt(squares[l])
			if math.Abs(float64(got)-want) > 1e-6*want {
				t.Errorf("step %d, layer %d: %v, want %v", step+1, l, got, want)
			}
		}
		if len(e.UpdateRatios.Layers) != 2 || len(e.UpdateRatios.Groups) < 3 {
			t.Errorf("%+v", e.UpdateRatios)
		}
	}
	if hashes(tr) != hashes(plain) {
		t.Error("measuring changed weights or state")
	}
	if n := filetest.AllocsPerRun(3, func() {
		tr.ratios.due = true
		tr.update(1e-9, 1)
	}); n != 0 {
		t.Errorf("%v allocations per update that is measured, want 0", n)
	}
}

// Ranks agree with one rank, whatever they own.
func TestUpdateRatiosOnRanks(t *testing.T) {
	var want LayerFigures
	for stage := range 4 {
		cfg := smallConfig(t, traintest.Data(t), "model.vocab=320", "optimizer.name=muon")
		cfg.Parallel.Zero = stage
		for n := 1; n <= 3; n += 2 {
			onRanks(t, cfg, n, stage%2 == 0, func(x *Trainer) error {
				e, err := x.Step(context.Background(), traintest.Tokens{VocabSize: 320, Length: 32, BatchSize: 8})
				if err != nil {
					return err
				}
				if want.Layers == nil && n == 1 {
					want = e.UpdateRatios
				}
				if len(want.Layers) != 2 || want.Layers[0] <= 0 || !reflect.DeepEqual(e.UpdateRatios, want) {
					t.Errorf("ZeRO %d, rank %d of %d: %+v, one rank %+v",
						stage, x.world.Rank(), n, e.UpdateRatios, want)
				}
				return nil
			})
		}
	}
}

// A weight too large for the memory of activations is measured by no number of ranks, even if their parts would fit.
func TestUpdateRatiosOfLargeWeightsAreLeftOutByAllRanks(t *testing.T) {
	cfg := smallConfig(t, traintest.Data(t), "model.vocab=1024", "train.micro_batch=1")
	for n := 1; n <= 3; n++ {
		cfg.Parallel.Zero = n
		onRanks(t, cfg, n, false, func(x *Trainer) error {
			if table, room := 4*x.Model().Params()[0].Len(), x.ratios.room.Size(); table < room || table/2 > room {
				return fmt.Errorf("a table of %d bytes tests nothing beside %d bytes of activations", table, room)
			}
			e, err := x.Step(context.Background(), traintest.Tokens{VocabSize: 1024, Length: 32, BatchSize: 8})
			if err != nil {
				return err
			}
			r := e.UpdateRatios
			if table := float64(r.Groups["embedding"]); !math.IsNaN(table) || !(r.Groups["matrix"] > 0) {
				t.Errorf("%d ranks: %+v", n, r)
			}
			return nil
		})
	}
}
