package model

import (
	"anneal/autograd"
	"anneal/device"
	"anneal/precision"
	"anneal/tensor"
)

// Distillation trains a model, the student, on what another one, the teacher, expects of each token, beside the token
// that follows (Hinton et al. 2015, arXiv 1503.02531). The loss of a token is
//
//	(1−α)·CE + α·τ²·KL(teacher ‖ student)    both distributions at temperature τ
//
// over k+1 outcomes: the teacher's k likeliest tokens, and all others together (device.Teacher). Renormalising the k
// would teach the student to be too sure of them (Anshumann et al. 2025, arXiv 2503.16870); with the others as one
// outcome, the divergence is 0 for a student that gives each of the k, and the rest, what the teacher does. τ² keeps
// the size of the gradient while τ changes.
//
// The teacher's forward pass runs in the same step, before the student's and in the memory of its activations. Memory:
// the teacher's weights, and 8·k + 8 bytes per token of a micro-batch. Time: the teacher's forward pass. Default: off;
// τ = 1, α = 0.5, k = 64. Not for a teacher that the student will outgrow, nor for one with another tokenizer.

// NewTeacher allocates what a teacher expects of n tokens: k outcomes of each, and the rest.
func NewTeacher(a *tensor.Arena, p precision.Policy, n, k int) *device.Teacher {
	ids, of, rest, kl := a.New(tensor.I32, n, k), a.New(p.Master, n, k), a.New(p.Master, n), a.New(p.Master, n)
	return &device.Teacher{IDs: &ids, P: &of, Rest: &rest, KL: &kl}
}

// Teach writes to b.Teacher what the model expects of the tokens of b. It takes the tape, without gradients.
func (m *Decoder) Teach(t *autograd.Tape, b *Batch) {
	t.Reset(false)
	t.LogitBytes = m.Config.LogitBytes
	b.read = autograd.Sequence{Pos: b.Seq.Pos, Mask: b.Seq.Mask}
	h := m.Forward(t, &b.Tokens, &b.read) // [N, D]
	to := b.Teacher
	t.Likeliest(h, &m.head.Param, to.IDs, to.P, to.Rest, m.Config.LogitSoftcap, to.Temperature)
}
