package train

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"testing"

	"anneal/internal/filetest"
	"anneal/model"
	"anneal/tensor"
	"anneal/train/traintest"
)

// With SGD an update is the rate times the gradient. Measuring changes no bit.
func TestUpdateRatiosAreThoseOfSGD(t *testing.T) {
	for _, precision := range []string{"fp64", "bf16_sr"} {
		settings := []string{
			"precision=" + precision, "train.clip=0", "optimizer.weight_decay=0", "optimizer.momentum=0",
			"optimizer.lr=0.5",
		}
		tr, src := optimizerTrainer(t, "sgd", append(settings, "train.norms_every=2")...)
		plain, _ := optimizerTrainer(t, "sgd", append(settings, "train.norms_every=0")...)
		for step := range 4 {
			before := layerWeights(tr.Model())
			e, err := tr.Step(context.Background(), src)
			if err != nil {
				t.Fatal(err)
			}
			steps(t, plain, src, 1)
			if step%2 == 0 {
				if e.UpdateRatios.Layers != nil {
					t.Errorf("%s: step %d has ratios, which are due every second step", precision, step+1)
				}
				continue
			}
			for l, after := range layerWeights(tr.Model()) {
				moved, squares := 0.0, 0.0
				for i, w := range after {
					moved, squares = moved+(w-before[l][i])*(w-before[l][i]), squares+w*w
				}
				want := math.Sqrt(moved / squares)
				if precision == "fp64" { // in BF16, an update is rounded
					want = e.LR * float64(e.GradNorms.Layers[l]) / math.Sqrt(squares)
				}
				if got := float64(e.UpdateRatios.Layers[l]); !(math.Abs(got-want) <= 1e-6*want) {
					t.Errorf("%s: step %d, layer %d: %v, want %v", precision, step+1, l, got, want)
				}
			}
			if r := e.UpdateRatios; len(r.Layers) != 2 || !(r.Groups["matrix"] > 0) || !(r.Groups["embedding"] > 0) ||
				!(r.Groups["norm"] > 0) {
				t.Errorf("%s: %+v", precision, r)
			}
		}
		if hashes(tr) != hashes(plain) {
			t.Errorf("%s: measuring changed weights or state", precision)
		}
		if n := filetest.AllocsPerRun(3, func() {
			tr.ratios.due = true
			tr.update(1e-9, 1)
		}); n != 0 {
			t.Errorf("%s: %v allocations per update that is measured, want 0", precision, n)
		}
	}
}

// layerWeights returns the weights of each of two layers.
func layerWeights(m *model.Decoder) (layers [2][]float64) {
	for _, p := range m.Params() {
		if l := model.LayerOf(p); l >= 0 {
			for i := range p.Value.Len() {
				layers[l] = append(layers[l], p.Value.Float64(i))
			}
		}
	}
	return layers
}

// A layer or a group with a weight that is not measured has no figure: one of its other weights would be wrong.
func TestUpdateRatiosOfPartOfALayerAreNotGiven(t *testing.T) {
	for _, precision := range []string{"fp32", "bf16_sr"} {
		tr, src := optimizerTrainer(t, "sgd", "precision="+precision, "train.norms_every=1")
		room, err := tensor.NewArena("room", 4096) // for gains, but not for matrices
		if err != nil {
			t.Fatal(err)
		}
		defer room.Close()
		tr.ratios.room = room
		e, err := tr.Step(context.Background(), src)
		if err != nil {
			t.Fatal(err)
		}
		r := e.UpdateRatios
		for _, x := range []Number{r.Layers[0], r.Layers[1], r.Groups["matrix"]} {
			if !math.IsNaN(float64(x)) {
				t.Errorf("%s: matrices are not measured, but the ratios are %+v", precision, r)
			}
		}
		if !(r.Groups["norm"] > 0) {
			t.Errorf("%s: gains are measured, but the ratios are %+v", precision, r)
		}
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
