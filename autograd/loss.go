package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// Limits of the logits that exist at one time: [tokens × vocabulary] is never formed. With fewer rows than headRows,
// most of the time goes into reading and packing the head for each chunk and adding to its gradient. headRows rows of
// logits take 512/D of the bytes of the head. Set Tape.LogitBytes to raise the limit.
const (
	logitBytes = 16 << 20
	headRows   = 512
)

// HeadLoss writes losses [N], the cross-entropy of h·headᵀ against targets [N] (I32, −100 ignored): h [N, D], head [V,
// D]. With o.Teacher, whose tensors cover all N tokens, gradients are those of distillation. It processes the tokens
// in chunks. If the tape records, it computes each chunk's gradients of the *summed* loss while the chunk's logits
// exist, so backward has nothing left to do here. The caller divides by the number of targets and by Tape.LossScale
// when it scales the gradients of the step. HeadLoss must be the end of a model: h must have no other use, and the
// call must be outside of blocks. o.Softcap caps the logits; o.ZLoss adds to the gradients, not to losses; o.LogZ and
// o.Behind are [N]. If this rank has only some rows of the head, peers have the others (vocabulary.go); then sampled
// labels, o.Behind and teachers do not work.
func (t *Tape) HeadLoss(h *Var, head *Param, targets, losses *tensor.Tensor, o device.LossOptions) {
	in := t.value(h)
	rows, vocab := in.Rows(), head.Value.Dim(0)
	var dh *tensor.Tensor
	if t.grad {
		dh = t.onlyGrad(h)
	}
	mark, cut, widest := t.temp.Mark(), t.cutRows(head), vocab
	var ids []int32
	if cut {
		if o.Labels != (tensor.RNG{}) {
			panic("autograd: labels cannot be sampled from logits of which peers have parts")
		}
		if o.Teacher != nil {
			panic("autograd: a teacher needs all logits, of which peers have parts")
		}
		if o.Behind != nil {
			panic("autograd: the highest logit is not known where peers have parts")
		}
		local := t.ref(t.temp.New(tensor.I32, rows))
		ids, targets = t.here(local, targets, head), local
		widest = (head.Rows.All + t.peers() - 1) / t.peers() // of any peer
		if o.LogZ == nil {
			o.LogZ = t.ref(t.temp.New(t.Types.Stat, rows))
		}
	}
	chunk := headChunk(rows, widest, t.Types.Stat.Size(), t.LogitBytes)
	logits := t.ref(t.temp.New(t.Types.Stat, chunk, vocab))
	gradient := logits // the gradient overwrites the logits, unless the products would round it
	if t.grad && t.Types.narrow() {
		gradient = t.ref(t.temp.New(t.Types.Activation, chunk, vocab))
	}
	o.Scale = t.LossScale
	refs := t.tensorN
	for from := 0; from < rows; from += chunk {
		t.tensorN = refs // the headers of each chunk are reused
		to := min(from+chunk, rows)
		x := t.ref(in.Slice(from, to))          // [c, D]
		z := t.ref(logits.Slice(0, to-from))    // [c, V]
		dz := t.ref(gradient.Slice(0, to-from)) // [c, V]
		y := t.ref(targets.Slice(from, to))     // [c]
		loss := t.ref(losses.Slice(from, to))   // [c]
		part := o
		part.FirstLabel += uint64(from)
		if o.LogZ != nil {
			part.LogZ = t.ref(o.LogZ.Slice(from, to)) // [c]
		}
		if o.Behind != nil {
			part.Behind = t.ref(o.Behind.Slice(from, to)) // [c]
		}
		if o.Teacher != nil {
			part.Teacher = t.teacherOf(o.Teacher, from, to)
		}
		t.logits(z, x, head, o.Softcap)
		if cut {
			t.shareLoss(loss, part.LogZ, z, y, ids[from:to], part)
			loss, part.Given = nil, part.LogZ
		}
		if !t.grad {
			if !cut {
				t.Device.CrossEntropy(loss, nil, z, y, part)
			}
			continue
		}
		t.Device.CrossEntropy(loss, dz, z, y, part)
		t.headGrad(t.ref(dh.Slice(from, to)), dz, x, head)
	}
	t.temp.Release(mark)
}

// logits writes z [c, V], the logits of x [c, D], capped if softcap > 0.
func (t *Tape) logits(z, x *tensor.Tensor, head *Param, softcap float64) {
	t.Device.MatMul(z, x, t.operand(head), device.NT, device.MatMulOptions{Operand: t.Types.Operand})
	if softcap > 0 {
		t.Device.Softcap(z, softcap)
	}
}

// headGrad writes dx [c, D] from the gradient dz [c, V] of the logits of x [c, D], and adds to the head's gradient.
func (t *Tape) headGrad(dx, dz, x *tensor.Tensor, head *Param) {
	if !head.Frozen {
		t.multiplyGrad(head, dz, x)
	}
	t.Device.MatMul(dx, dz, &head.Value, device.NN, device.MatMulOptions{Operand: t.Types.Operand})
}

// headChunk returns the number of rows of logits per chunk: as many as fit in the larger of room and logitBytes, and
// at least headRows.
func headChunk(rows, vocab, size, room int) int {
	chunk := max(max(logitBytes, room)/(vocab*size)&^63, headRows)
	return min(chunk, rows)
}

// Logits returns the logits [to−from, V] of rows [from, to) of h, for sampling, capped if softcap > 0. It is not
// recorded.
func (t *Tape) Logits(h *Var, head *Param, from, to int, softcap float64) *tensor.Tensor {
	z := t.ref(t.keep.New(t.Types.Stat, to-from, head.Value.Dim(0)))
	t.logits(z, t.ref(t.value(h).Slice(from, to)), head, softcap)
	return z
}
