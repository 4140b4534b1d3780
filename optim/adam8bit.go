package optim

import (
	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// Adam8bit is AdamW with 8-bit moments (Dettmers et al. 2021, arXiv 2110.02861), in blocks of 256 numbers. Each
// number is one of the 256 values of tensor.Dynamic8 times the largest magnitude of its block. The update uses the
// moments before they are rounded.
//
// State: 2 + 8/256 = 2.03 bytes per parameter. Embeddings, heads, gains, biases and parameters of fewer than 4096
// elements keep AdamW's 8 bytes, because a rare token or a single large element would take precision from the others.
// Defaults: AdamW's. Not needed while the state fits: it saves memory, but hardly any time.
type Adam8bit struct {
	Beta1, Beta2, Eps float64
}

// smallest is the size in elements from which moments are stored in 8 bits.
const smallest = 4096

// Layout implements Optimizer: running means of the gradient and of its square, with the scales of their blocks.
func (o Adam8bit) Layout(a *tensor.Arena, p *nn.Param) State {
	if !o.rounds(p) {
		return AdamW(o).Layout(a, p)
	}
	blocks := (p.Value.Len() + device.Block - 1) / device.Block
	return State{
		{"m", a.New(tensor.U8, p.Value.Shape()...), 1}, {"m.scale", a.New(wide(p), blocks), device.Block},
		{"v", a.New(tensor.U8, p.Value.Shape()...), 1}, {"v.scale", a.New(wide(p), blocks), device.Block},
	}
}

func (Adam8bit) rounds(p *nn.Param) bool { return p.Role == nn.Matrix && p.Len() >= smallest }

// Update implements Optimizer.
func (o Adam8bit) Update(d device.Device, p *nn.Param, state State, s Step, scratch *tensor.Arena) {
	if !o.rounds(p) {
		AdamW(o).Update(d, p, state, s, scratch)
		return
	}
	d.AdamW8(&p.Value, &p.Grad, &state[0].Tensor, &state[1].Tensor, &state[2].Tensor, &state[3].Tensor,
		AdamW(o).constants(s))
}
