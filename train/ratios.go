package train

import (
	"math"

	"anneal/device"
	"anneal/optim"
	"anneal/tensor"
)

// updateRatios measures how far an update moves weights: ‖Δw‖/‖w‖, for each layer and group. About a thousandth is
// usual with Adam; much less trains nothing, much more is unstable. Each weight is copied before its update into the
// memory of activations, which is free then, so this costs no memory. A parameter that would not fit there whole is
// not measured, even on ranks that own only a part of it, so the result does not depend on the number of ranks. Its
// layer and its group then have no figure.
type updateRatios struct {
	due           bool          // in the current step
	room          *tensor.Arena // of activations
	moved, weight paramNorms
	squares       device.Squares

	before, after, flat tensor.Tensor    // the current weight: before its update, after it, and as it is stored
	both                []*tensor.Tensor // before and after
}

// measuresRatios reports whether the trainer can measure updates. It cannot if ranks share weights or groups of ranks
// step separately.
func (t *Trainer) measuresRatios() bool {
	return t.world.Size() == t.mesh.Replicas && t.outer == nil && len(t.slots) == 1
}

// measured updates a weight and measures how far it moves. Of a weight stored in BF16, it compares copies in the format
// of its gradient, in which their difference is exact.
func (t *Trainer) measured(p *updated, s optim.Step) {
	r, w, format := &t.ratios, &p.Value, p.Format()
	stored := w.DType() == format
	need := p.Len()*format.Size() + tensor.Align
	if !stored {
		need *= 2
	}
	if r.room.Size()-r.room.Used() < need {
		r.moved.squares[p.Number] = math.NaN()
		t.apply(p, s)
		return
	}
	mark := r.room.Mark()
	r.before, r.flat = r.room.New(format, w.Len()), w.Reshape(w.Len())
	t.dev.Copy(&r.before, &r.flat)
	t.apply(p, s)
	if r.after = r.flat; !stored {
		r.after = r.room.New(format, w.Len())
		t.dev.Copy(&r.after, &r.flat)
	}
	t.dev.Descend(&r.before, &r.after, device.Descend{LR: 1})
	r.both = append(r.both[:0], &r.before, &r.after)
	sums := r.squares.Each(t.dev, r.both...)
	r.moved.squares[p.Number] += sums[0]
	r.weight.squares[p.Number] += sums[1]
	r.room.Release(mark)
}

// reportRatios returns the ratios of the current step. Ranks that own parts of the weights add what they have measured.
func (t *Trainer) reportRatios() (f LayerFigures, err error) {
	r := &t.ratios
	r.due = false
	if t.world.Size() > 1 {
		all, err := t.shareFloats(append(append([]float64(nil), r.moved.squares...), r.weight.squares...)...)
		if err != nil {
			return f, err
		}
		n := len(r.moved.squares)
		clear(r.moved.squares)
		clear(r.weight.squares)
		for _, x := range all {
			for i := range n {
				r.moved.squares[i] += x[i]
				r.weight.squares[i] += x[n+i]
			}
		}
	}
	// rounded, so that the result does not depend on the order in which ranks add
	return r.moved.figures(func(moved, weight float64) float64 { return float64(float32(math.Sqrt(moved / weight))) },
		&r.weight), nil
}
