package model

import (
	"anneal/autograd"
	"anneal/device"
	"anneal/precision"
	"anneal/tensor"
)

// Distillation trains a model, the student, to predict the next token and also to match the predictions of another
// model, the teacher (Hinton et al. 2015, arXiv 1503.02531). The loss of a token is
//
//	(1−α)·CE + α·τ²·KL(teacher ‖ student)    both distributions at temperature τ
//
// over k+1 outcomes: the teacher's k likeliest tokens, and all other tokens as one (device.Teacher). Renormalising the
// k would make the student overconfident in them (Anshumann et al. 2025, arXiv 2503.16870). With the others as one
// outcome, the divergence is 0 if the student's k+1 probabilities equal the teacher's. The factor τ² keeps the size of
// the gradient independent of τ.
//
// The teacher's forward pass runs in the same step, before the student's and in the memory of its activations. Memory:
// the teacher's weights, and 8·k + 8 bytes per token of a micro-batch. Time: the teacher's forward pass. Default: off;
// τ = 1, α = 0.5, k = 64. Not for a teacher that the student will outgrow, nor for one with another tokenizer.

// NewTeacher allocates a teacher's predictions for n tokens: k outcomes for each, and the rest.
func NewTeacher(a *tensor.Arena, p precision.Policy, n, k int) *device.Teacher {
	ids, of, rest, kl := a.New(tensor.I32, n, k), a.New(p.Master, n, k), a.New(p.Master, n), a.New(p.Master, n)
	return &device.Teacher{IDs: &ids, P: &of, Rest: &rest, KL: &kl}
}

// Teach writes the model's predictions for the tokens of b to b.Teacher. It uses the tape, without gradients.
func (m *Decoder) Teach(t *autograd.Tape, b *Batch) {
	t.Reset(false)
	t.LogitBytes = m.Config.LogitBytes
	b.read = autograd.Sequence{Pos: b.Seq.Pos, Mask: b.Seq.Mask}
	h := m.Forward(t, &b.Tokens, &b.read) // [N, D]
	to := b.Teacher
	t.Likeliest(h, &m.head.Param, to.IDs, to.P, to.Rest, m.Config.LogitSoftcap, to.Temperature)
}
