package train

import (
	"math"

	"anneal/device"
	"anneal/optim"
	"anneal/tensor"
)

// updateRatios measure how far an update moves weights: ‖Δw‖/‖w‖, of each layer and group. About a thousandth is usual
// with Adam; much less trains nothing, much more is not stable. Each weight is copied before its update, where
// activations are at other times, so that it costs no memory; a parameter that would not fit there whole is left out,
// also by ranks that own a part of it, so that all numbers of ranks measure the same.
type updateRatios struct {
	due           bool          // in the step in hand
	room          *tensor.Arena // of activations
	moved, weight paramNorms
	squares       device.Squares

	before, flat tensor.Tensor    // of the weight in hand
	both         []*tensor.Tensor // the same two
}

// measuresRatios reports whether updates of the trainer can be measured: not where ranks share weights, or groups of
// ranks step alone.
func (t *Trainer) measuresRatios() bool {
	return t.world.Size() == t.mesh.Replicas && t.outer == nil && len(t.slots) == 1
}

// measured updates a weight and measures how far it moves.
func (t *Trainer) measured(p *updated, s optim.Step) {
	r, w := &t.ratios, &p.Value
	if r.room.Size()-r.room.Used() < p.Len()*w.DType().Size()+tensor.Align {
		t.opt.Update(t.dev, p.Param, p.state, s, t.scratch)
		return
	}
	mark := r.room.Mark()
	r.before, r.flat = r.room.New(w.DType(), w.Len()), w.Reshape(w.Len())
	t.dev.Copy(&r.before, &r.flat)
	t.opt.Update(t.dev, p.Param, p.state, s, t.scratch)
	t.dev.Descend(&r.before, &r.flat, device.Descend{LR: 1})
	r.both = append(r.both[:0], &r.before, &r.flat)
	sums := r.squares.Each(t.dev, r.both...)
	r.moved.squares[p.Number] += sums[0]
	r.weight.squares[p.Number] += sums[1]
	r.room.Release(mark)
}

// reportRatios returns the ratios of the step in hand. Ranks that own parts of the weights add what they have measured.
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
	// rounded to what does not depend on the order in which ranks have added
	return r.moved.figures(func(moved, weight float64) float64 { return float64(float32(math.Sqrt(moved / weight))) },
		&r.weight), nil
}
