package autograd

import (
	"anneal/device"
	"anneal/tensor"
)

// Likeliest writes a model's predictions for the tokens whose last hidden states are h [N, D]: the k likeliest next
// tokens to ids [N, k] (I32), their probabilities to p [N, k], and the probability of all other tokens to rest [N], at
// a temperature (device.Teacher). It processes the tokens in chunks like HeadLoss and never forms [N, V]. It is not
// recorded; the head is whole.
func (t *Tape) Likeliest(h *Var, head *Param, ids, p, rest *tensor.Tensor, softcap, temperature float64) {
	in := t.value(h)
	rows, vocab := in.Rows(), head.Value.Dim(0)
	mark := t.temp.Mark()
	chunk := headChunk(rows, vocab, t.Types.Stat.Size(), t.LogitBytes)
	logits := t.ref(t.temp.New(t.Types.Stat, chunk, vocab))
	refs := t.tensorN
	for from := 0; from < rows; from += chunk {
		t.tensorN = refs // the headers of each chunk are reused
		to := min(from+chunk, rows)
		z := t.ref(logits.Slice(0, to-from))                           // [c, V]
		t.logits(z, t.ref(in.Slice(from, to)), head, softcap)          // of [c, D]
		ids, p := t.ref(ids.Slice(from, to)), t.ref(p.Slice(from, to)) // [c, k]
		t.Device.Likeliest(ids, p, t.ref(rest.Slice(from, to)), z, temperature)
	}
	t.temp.Release(mark)
}

// teacherOf returns a teacher's predictions for rows [from, to).
func (t *Tape) teacherOf(of *device.Teacher, from, to int) *device.Teacher {
	part := &t.teacher
	*part = *of
	part.IDs, part.P = t.ref(of.IDs.Slice(from, to)), t.ref(of.P.Slice(from, to))     // [c, k]
	part.Rest, part.KL = t.ref(of.Rest.Slice(from, to)), t.ref(of.KL.Slice(from, to)) // [c]
	return part
}
