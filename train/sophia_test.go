package train

import (
	"context"
	"math"
	"slices"
	"testing"

	"anneal/dataset"
	"anneal/optim"
	"anneal/tensor"
	"anneal/train/traintest"
)

// curvatures returns the sum of each parameter's curvature.
func curvatures(tr *Trainer) []float64 {
	var sums []float64
	for _, p := range tr.updated {
		sums = append(sums, tr.dev.Sum(&p.state[1].Tensor))
	}
	return sums
}

// The estimate comes after every k-th update: until then the curvature is 0 and every weight that has a gradient is
// clipped; from then on some are not.
func TestSophiaEstimatesAfterEveryKthUpdate(t *testing.T) {
	tr, src := optimizerTrainer(t, "sophia", "optimizer.hessian_every=3", "optimizer.rho=100")
	last := curvatures(tr)
	for update := 1; update <= 9; update++ {
		s, err := tr.Step(context.Background(), src)
		if err != nil {
			t.Fatal(err)
		}
		// only embeddings of unseen tokens have no gradient
		if update <= 3 && s.WinRate > 0.1 || update > 3 && s.WinRate < 0.1 {
			t.Errorf("update %d: the win rate is %v", update, s.WinRate)
		}
		now := curvatures(tr)
		for i := range now {
			if changed := now[i] != last[i]; changed != (update%3 == 0) {
				t.Errorf("update %d: the curvature of %s changed is %v", update, tr.updated[i].Name, changed)
			}
		}
		last = now
	}
}

// A step that the guard skips is no update: it moves neither the count to the next estimate nor the estimate.
func TestSophiaCountsUpdatesNotSteps(t *testing.T) {
	tr, src := optimizerTrainer(t, "sophia", "optimizer.hessian_every=2")
	steps(t, tr, src, 2)
	before := curvatures(tr)
	embed := &tr.Model().Params()[0].Value
	kept := embed.F32()[0]
	embed.F32()[0] = float32(math.NaN())
	s, err := tr.Step(context.Background(), src)
	if err != nil || !s.Skipped {
		t.Fatalf("a step from weights that are not finite was not skipped: %+v, %v", s, err)
	}
	embed.F32()[0] = kept
	steps(t, tr, src, 1)
	for i, c := range curvatures(tr) {
		if c != before[i] {
			t.Errorf("the curvature of %s was estimated after update %d", tr.updated[i].Name, tr.Position().Updates)
		}
	}
	steps(t, tr, src, 1)
	for i, c := range curvatures(tr) {
		if c == before[i] {
			t.Errorf("the curvature of %s was not estimated after update %d", tr.updated[i].Name, tr.Position().Updates)
		}
	}
}

// Labels go by the token's place in the batch: micro-batches of any size draw the same ones, and the estimate is the
// same but for the order of sums.
func TestSophiaDoesNotDependOnMicroBatches(t *testing.T) {
	whole, src := optimizerTrainer(t, "sophia", "optimizer.hessian_every=2", "train.micro_batch=8", "precision=fp64")
	parts, _ := optimizerTrainer(t, "sophia", "optimizer.hessian_every=2", "train.micro_batch=2", "precision=fp64")
	steps(t, whole, src, 2)
	steps(t, parts, src, 2)
	want, got := curvatures(whole), curvatures(parts)
	for i := range want {
		if want[i] == 0 || math.Abs(got[i]-want[i]) > 1e-9*want[i] {
			t.Errorf("%s: the curvature sums to %v with 4 micro-batches, %v with one",
				whole.updated[i].Name, got[i], want[i])
		}
	}
}

// The pass of an estimate is part of a step: it has the dropout of that step, and repeats neither the replay nor the
// measurement of the noise.
func TestSophiaEstimatesWithinTheStep(t *testing.T) {
	tr, src := optimizerTrainer(t, "sophia", "optimizer.hessian_every=1", "model.dropout=0.1", "train.micro_batch=4",
		"guard.replay_every=2", "train.noise_scale_every=2")
	passes := 0
	tr.OnPhase = func(p Phase) {
		if p == Backward {
			passes++
		}
	}
	for step := 1; step <= 4; step++ {
		passes = 0
		e, err := tr.Step(t.Context(), src)
		if err != nil {
			t.Fatal(err)
		}
		if want := 4 + (step-1)%2; passes != want || math.IsNaN(e.NoiseScale) != (step%2 == 1) {
			t.Errorf("step %d: %d passes, want %d; the noise scale is %v", step, passes, want, e.NoiseScale)
		}
		if n := tr.batch.Seq.Noise.Step; n != step || len(tr.blocks.sums) > 0 {
			t.Errorf("step %d: the estimate has the dropout of step %d, and measures %d sums of squares",
				step, n, len(tr.blocks.sums))
		}
	}
}

// The win rate counts every weight once, also a tied table that two stages of a pipeline have.
func TestWinRateCountsATiedTableOnce(t *testing.T) {
	cfg := smallConfig(t, traintest.Data(t), "optimizer.name=sophia", "optimizer.hessian_every=1", "precision=fp64",
		"model.tie_embeddings=true", "train.batch_tokens=512")
	cfg.Model.Vocab = 300
	src := dataset.NewRandom(300, cfg.Model.Context, 5)
	rates := func(n int) (list []float64) {
		onRanks(t, cfg, n, true, func(x *Trainer) error {
			for range cfg.Train.Steps {
				e, err := x.Step(t.Context(), src)
				if err != nil {
					return err
				}
				if x.world.Rank() == 0 {
					list = append(list, e.WinRate)
				}
			}
			return nil
		})
		return list
	}
	want := rates(1)
	for cfg.Parallel.Pipeline, cfg.Parallel.Zero = 2, 0; cfg.Parallel.Zero < 3; cfg.Parallel.Zero++ {
		for _, n := range []int{2, 4} {
			if got := rates(n); !slices.Equal(got, want) {
				t.Errorf("%d ranks at stage %d have the win rates %v, one rank %v", n, cfg.Parallel.Zero, got, want)
			}
		}
	}
}

// oneSource is a mix of a single source.
type oneSource struct{ traintest.Tokens }

func (oneSource) At(k uint64) (source int, sample uint64) { return 0, k }
func (oneSource) Drawn(samples uint64) []uint64           { return []uint64{samples} }
func (oneSource) Loaders() []*dataset.Loader              { return make([]*dataset.Loader, 1) }

// What follows an estimate, evaluation above all, sees the data's targets again, and the losses of sources are those of
// the data.
func TestSophiaLeavesNoLabelsBehind(t *testing.T) {
	tr, src := optimizerTrainer(t, "sophia", "optimizer.hessian_every=1")
	e, err := tr.Step(t.Context(), oneSource{src})
	if err != nil {
		t.Fatal(err)
	}
	if loss, ok := tr.SourceLoss(0); !ok || math.Abs(loss-e.Loss) > 1e-6 {
		t.Errorf("the only source has the loss %v in a step of the loss %v", loss, e.Loss)
	}
	if tr.batch.Labels != (tensor.RNG{}) {
		t.Error("after an estimate the batch still draws its labels")
	}
	if o := tr.opt.(*optim.Sophia); !o.Due(tr.Position().Updates) {
		t.Error("no estimate was due, so that nothing was tested")
	}
}
