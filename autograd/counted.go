package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// Counted lists the tokens of a batch that have a target, for batches in which most have none because prompts are not
// trained on or rows are padded.
type Counted struct {
	Rows    *tensor.Tensor // [M] I32: the tokens, ascending
	Targets *tensor.Tensor // [M] I32: their targets
	Place   *tensor.Tensor // [N] I32: the index of each token in Rows, or device.Elsewhere
}

// leastRows is the smallest number of rows of logits that must fit in memory at a time.
const leastRows = 128

// HeadLossOf is HeadLoss for a batch in which only the tokens of c have a target; the head computes nothing for the
// others. Its results are those of HeadLoss, except that the head's gradient is summed in another order. It takes no
// more memory than HeadLoss. It does nothing and returns false if that memory is too small, if peers have parts of the
// head, if labels are sampled, if there is a teacher, or if both LogZ and Behind are requested.
func (t *Tape) HeadLossOf(h *Var, head *Param, c Counted, losses *tensor.Tensor, o device.LossOptions) bool {
	in := t.value(h) // [N, D]
	vocab, dim, counted := head.Value.Dim(0), in.Cols(), c.Rows.Len()
	all := headChunk(in.Rows(), vocab, t.Types.Stat.Size(), t.LogitBytes)
	fixed := 2*aligned(counted) + aligned(counted*dim) + 2*aligned(1)
	chunk := min((all*vocab-fixed)/(vocab+dim), counted)
	needsAll := t.cutRows(head) || o.Labels != (tensor.RNG{}) || o.LogZ != nil && o.Behind != nil || o.Teacher != nil
	if needsAll || chunk < min(counted, leastRows) {
		return false
	}
	mark := t.temp.Mark()
	logits := t.ref(t.temp.New(t.Types.Stat, all, vocab))
	gradient := logits
	if t.grad && t.Types.narrow() {
		gradient = t.ref(t.temp.New(t.Types.Activation, all, vocab))
	}
	free := carver{rest: logits.Reshape(all * vocab)}
	measured := o.LogZ
	if measured == nil {
		measured = o.Behind
	}
	own, second := t.ref(free.take(counted)), t.ref(free.take(counted)) // [M]: losses, and LogZ or Behind
	dh := t.ref(free.take(counted, dim))                                // [M, D]
	rows, scores := t.ref(free.take(chunk, dim)), t.ref(free.take(chunk, vocab))
	if gradient == logits {
		gradient = scores
	}
	for refs, from := t.tensorN, 0; from < counted; from += chunk {
		t.tensorN = refs // the headers of each chunk are reused
		to := min(from+chunk, counted)
		x := t.ref(rows.Slice(0, to-from))      // [c, D]
		z := t.ref(scores.Slice(0, to-from))    // [c, V]
		dz := t.ref(gradient.Slice(0, to-from)) // [c, V]
		part := device.LossOptions{Softcap: o.Softcap, ZLoss: o.ZLoss, Scale: t.LossScale}
		if o.LogZ != nil {
			part.LogZ = t.ref(second.Slice(from, to))
		} else if o.Behind != nil {
			part.Behind = t.ref(second.Slice(from, to))
		}
		t.Device.TakeRows(x, in, t.ref(c.Rows.Slice(from, to)), 1)
		t.logits(z, x, head, o.Softcap)
		if !t.grad {
			dz = nil
		}
		t.Device.CrossEntropy(t.ref(own.Slice(from, to)), dz, z, t.ref(c.Targets.Slice(from, to)), part)
		if t.grad {
			t.headGrad(t.ref(dh.Slice(from, to)), dz, x, head)
		}
	}
	t.putBack(losses, own, c.Place)
	if measured != nil {
		t.putBack(measured, second, c.Place)
	}
	if t.grad {
		t.Device.TakeRows(t.onlyGrad(h), dh, c.Place, 1) // [N, D]
	}
	t.temp.Release(mark)
	return true
}

// CountedLogits returns the logits [M, V] of the tokens of c from h [N, D], in host memory. They are in scratch memory
// and valid until the tape is used again. It is not recorded. It takes no more memory than HeadLoss if M is at most
// headRows.
func (t *Tape) CountedLogits(h *Var, head *Param, c Counted, softcap float64) *tensor.Tensor {
	in, mark := t.value(h), t.temp.Mark()
	x := t.ref(t.temp.New(t.Types.Activation, c.Rows.Len(), in.Cols()))   // [M, D]
	z := t.ref(t.temp.New(t.Types.Stat, c.Rows.Len(), head.Value.Dim(0))) // [M, V]
	t.Device.TakeRows(x, in, t.ref(*c.Rows), 1)
	t.logits(z, x, head, softcap)
	t.temp.Release(mark)
	return device.OnHost(t.Device, z)
}

// putBack writes the elements of from [M] to their places in to [N], and zeros between them.
func (t *Tape) putBack(to, from, place *tensor.Tensor) {
	t.Device.TakeRows(t.ref(to.Reshape(to.Len(), 1)), t.ref(from.Reshape(from.Len(), 1)), place, 1)
}

// A carver cuts tensors off the front of a flat one. Each begins at a multiple of carverAlign elements.
type carver struct{ rest tensor.Tensor }

const carverAlign = 64

func aligned(n int) int { return (n + carverAlign - 1) &^ (carverAlign - 1) }

func (c *carver) take(shape ...int) tensor.Tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	part := c.rest.Slice(0, n)
	c.rest = c.rest.Slice(min(aligned(n), c.rest.Len()), c.rest.Len())
	return part.Reshape(shape...)
}
