package model

import (
	"anneal/autograd"
	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

type ahead struct {
	block  *block
	norm   *nn.Param
	trunk  *autograd.Var
	losses *tensor.Tensor
}

func (m *Decoder) declareAhead(b *builder) {
	for range m.Config.Ahead {
		a := &ahead{}
		first := len(b.params)
		a.block = b.block(m.Config.Layers - 1)
		a.block.branches[0].body = a.block.attention
		a.norm = b.norm("norm")
		for _, p := range b.params[first:] {
			p.Name = "ahead." + p.Name
		}
		m.ahead = append(m.ahead, a)
	}
}

func (m *Decoder) aheadLoss(t *autograd.Tape, b *Batch) {
	if !t.Recording() {
		return
	}
	scale := t.LossScale
	for k, a := range m.ahead {
		x := t.Remember(m.trunk)
		x = t.Block(a.block, x, &b.Seq)
		h := norm(t, x, &a.norm.Param, m.Config.NormEps)
		targets, losses := t.Ahead(&b.Targets, &b.Seq, k+1)
		a.losses = losses
		t.LossScale = max(scale, 1) * m.Config.AheadWeight
		t.HeadLoss(h, &m.head.Param, targets, losses, device.LossOptions{Softcap: m.Config.LogitSoftcap})
	}
	t.LossScale = scale
	_ = tensor.I32
}
