package autograd

import (
	"math"

	"anneal/device"
	"anneal/tensor"
)

// Dropout (Srivastava et al. 2014) and stochastic depth (Huang et al. 2016, arXiv 1603.09382) on the branches of a
// model. In training a branch f at x becomes
//
//	x + mask∘f(x) / (keep·p)    each element of mask is 1 with probability keep; p is the probability that the branch
//	                            survives
//	x                           with probability 1 − p: the branch is not computed
//
// so that the expectation is x + f(x), which evaluation and generation compute. Both are pure functions of (seed,
// step, place): no mask is stored, and backward and recomputation draw the same one. keep is a multiple of 1/65536.

// A Noise keys the random numbers of one micro-batch.
type Noise struct {
	Seed uint64
	Step int  // step of the run
	Row  int  // index of the micro-batch's first token within the step, below 2³²
	Calm bool // every branch survives: for measuring the largest cost of a step
}

// A Drop gives the dropout rates of one place in a model. The zero value drops nothing.
type Drop struct {
	Site     int     // number of the place, below 2¹⁶
	Elements float64 // probability that an element is dropped
	Branch   float64 // probability that the whole branch is dropped for a micro-batch
}

// Dropped reports whether the branch at d is dropped for this micro-batch. It is false outside of training.
func (t *Tape) Dropped(d Drop, seq *Sequence) bool {
	if !t.train || d.Branch == 0 || seq.Noise.Calm {
		return false
	}
	n := &seq.Noise
	rng := tensor.NewRNG(n.Seed, tensor.PurposeDepth, uint32(n.Step))
	return rng.Float64(uint64(n.Row)<<16|uint64(d.Site)) < d.Branch
}

// mask returns the scale factors of the surviving elements at d, and whether any dropout applies.
func (t *Tape) mask(d Drop, seq *Sequence) (o device.Dropout, some bool) {
	if !t.train || d.Elements == 0 && d.Branch == 0 {
		return o, false
	}
	n := &seq.Noise
	keep := max(int(math.Round((1-d.Elements)*(1<<16))), 1)
	return device.Dropout{
		RNG: tensor.NewRNG(n.Seed, tensor.PurposeDropout, uint32(n.Step)), Site: d.Site, Row: n.Row,
		Keep: keep, Scale: (1 << 16) / float64(keep) / (1 - d.Branch),
	}, true
}

// Dropout drops elements of the residual stream x [N, D], in place; it consumes x.
func (t *Tape) Dropout(x *Var, d Drop, seq *Sequence) *Var {
	o, some := t.mask(d, seq)
	if !some {
		return x
	}
	out := t.consumeStream(x)
	t.dropout(&out.Value, &out.Value, o, seq)
	if t.grad {
		n := t.node()
		n.backward, n.x, n.out, n.drop, n.seq = dropoutBack, x, out, o, seq
	}
	return out
}

func dropoutBack(t *Tape, n *node) {
	dy := t.streamGrad(n.out)
	t.dropout(dy, dy, n.drop, n.seq)
	n.x.grad = n.out.grad // the gradient of the result is not read again, so its buffer is reused
}

// dropout writes mask·src to dst, or adds it: rows of the stream, each with the random numbers of its token.
func (t *Tape) dropout(dst, src *tensor.Tensor, o device.Dropout, seq *Sequence) {
	rows, first := dst.Rows(), 0
	if t.cuts() {
		first = t.Tensor.Rank() * rows
	}
	if len(seq.Runs) == 0 {
		o.Row += first
		t.Device.Dropout(dst, src, o)
		return
	}
	row, at := o.Row, 0 // at counts the batch's rows
	for _, r := range seq.Runs {
		from, to := max(first, at), min(first+rows, at+r.Count)
		if from < to {
			refs := t.tensorN
			o.Row = row + r.First + from - at
			t.Device.Dropout(t.ref(dst.Slice(from-first, to-first)), t.ref(src.Slice(from-first, to-first)), o)
			t.tensorN = refs
		}
		at += r.Count
	}
}
