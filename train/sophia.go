package train

import (
	"context"
	"math"

	"anneal/dataset"
	"anneal/optim"
	"anneal/tensor"
)

// curvature updates Sophia's estimate of the curvature if it is due after the last update. It runs the step's batch,
// whose samples start at from, forward and backward again with labels sampled from the model's predictions. A label
// depends on the update and on the token's place in the batch, not on micro-batches; dropout masks are those of the
// step. A non-finite estimate is discarded. After the update the step is not undone, so this pass does not check for
// cancellation.
func (t *Trainer) curvature(src dataset.Source, from uint64) error {
	o, is := t.opt.(*optim.Sophia)
	if !is || !o.Due(t.progress.Updates) {
		return nil
	}
	t.sampleLabels(tensor.NewRNG(t.cfg.Seed, tensor.PurposeLabel, uint32(t.progress.Updates)))
	t.progress.Step-- // this pass is part of the step, which has been counted
	sums, err := t.gradient(context.Background(), src, from)
	t.progress.Step++
	t.sampleLabels(tensor.RNG{}) // evaluations share the slots
	if err != nil {
		return err
	}
	if !finite(sums.squares) {
		return nil
	}
	t.observe(o, 1/(float64(sums.targets)*t.tape.LossScale*t.tape.LossScale))
	return nil
}

// observe updates the curvature from the gradients of sampled losses; weight multiplies their squares.
func (t *Trainer) observe(o *optim.Sophia, weight float64) {
	for _, p := range t.updated {
		if p.Frozen {
			continue
		}
		o.Observe(t.dev, p.Param, p.state, weight)
	}
}

// sampleLabels makes the losses those of labels sampled from the model's predictions, unless rng is zero.
func (t *Trainer) sampleLabels(rng tensor.RNG) {
	for i := range t.slots {
		b := t.slots[i].batch
		b.Labels, b.Seq.Plain = rng, rng != tensor.RNG{}
	}
}

// sampled reports whether the losses are those of sampled labels.
func (t *Trainer) sampled() bool { return t.batch.Labels != tensor.RNG{} }

// forgetReplica forgets the wins of the second copy of a tied table, whose stage has nothing else in the first unit.
// The stage with the first copy counts them.
func (t *Trainer) forgetReplica() {
	if o, is := t.opt.(*optim.Sophia); is && t.shard != nil && t.shard.Replica() {
		o.TakeWins()
	}
}

// winRate returns the share of weights that the last update did not clip, NaN for optimizers without clipping.
func (t *Trainer) winRate() (float64, error) {
	o, is := t.opt.(*optim.Sophia)
	if !is {
		return math.NaN(), nil
	}
	inside, moved := o.TakeWins()
	if !t.whole() || t.mesh.Pipeline > 1 {
		counts, err := t.shareFloats(float64(inside), float64(moved))
		if err != nil {
			return 0, err
		}
		inside, moved = 0, 0
		for r, c := range counts {
			if at := t.mesh.At(r); t.whole() && at.Data > 0 {
				continue // every rank updates everything
			}
			inside, moved = inside+int(c[0]), moved+int(c[1])
		}
	}
	return float64(inside) / float64(max(moved, 1)), nil
}
