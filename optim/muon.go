package optim

import (
	"cmp"
	"math"

	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// Muon moves every hidden matrix along its orthogonalised momentum (Jordan et al. 2024,
// kellerjordan.github.io/posts/muon), so that all directions of the matrix move equally, even if the gradient favours
// a few:
//
//	m ← μ·m + (1−μ)·g;  u = (1−μ)·g + μ·m;  O = NewtonSchulz(u) ≈ U·Vᵀ of u = U·Σ·Vᵀ
//	w ← w·(1 − lr·λ) − lr·scale·O
//
// The parts of a fused weight (q, k and v; gate and up) are orthogonalised separately. Everything else (embeddings,
// head, gains and biases) uses AdamW. The scale defines the meaning of lr: see MatchRMS, JordanScale and
// SpectralScale.
//
// NorMuon (Li et al. 2025, arXiv 2510.05491) equalises the rows of O, the neurons, by a running mean of their mean
// squares, as Adam does with elements, and restores the norm of O:
//
//	v ← β·v + (1−β)·mean_row(O²);  O ← O/√v · ‖O‖/‖O/√v‖
//
// State: 4 bytes per parameter of hidden matrices; other parameters keep AdamW's 8. NorMuon adds 4 bytes per row. Each
// step costs the products of NewtonSchulz, about 5·m/B of the training operations, for matrices of smaller side m and
// B tokens per step. Defaults: μ = 0.95, β = 0.95, lr and λ of AdamW with MatchRMS. Not for small batches, where that
// cost is no longer small, nor for models trained with Adam before. Its gain over a tuned AdamW shrinks as models
// grow, from 1.4× at 0.1B parameters to 1.1× at 1.2B (arXiv 2509.02046).
type Muon struct {
	Momentum  float64
	Iteration NewtonSchulz
	Scale     func(rows, cols int) float64
	RowBeta   float64 // β of NorMuon; 0 disables it
	Rest      AdamW

	work Orthogonaliser
	// Headers of the tensors of one part.
	value, grad, momentum, mean, update tensor.Tensor
}

// MatchRMS is the scale of Moonlight (Liu et al. 2025, arXiv 2502.16982), 0.2·√max(rows, cols). The root mean square
// of an update is lr/5 for every shape, about the same as AdamW's, so AdamW's learning rate and decay can be used.
func MatchRMS(rows, cols int) float64 { return 0.2 * math.Sqrt(float64(max(rows, cols))) }

// JordanScale is √max(1, rows/cols): lr is the spectral norm of the update of a square matrix, usually 0.02.
func JordanScale(rows, cols int) float64 { return math.Sqrt(max(1, float64(rows)/float64(cols))) }

// SpectralScale is √(rows/cols), where rows are the outputs. At any width a step changes the outputs by about lr
// times the size of the inputs, which is the condition of muP (Yang et al. 2023, arXiv 2310.17813).
func SpectralScale(rows, cols int) float64 { return math.Sqrt(float64(rows) / float64(cols)) }

// Orthogonalises reports whether Muon itself updates p; AdamW updates the other parameters.
func (o *Muon) Orthogonalises(p *nn.Param) bool { return p.Role == nn.Matrix && len(p.Shape) == 2 }

// Layout implements Optimizer: the momentum, plus the mean square of each row with NorMuon; AdamW's moments for other
// parameters.
func (o *Muon) Layout(a *tensor.Arena, p *nn.Param) State {
	if !o.Orthogonalises(p) {
		return o.Rest.Layout(a, p)
	}
	s := State{like(a, "m", p)}
	if o.RowBeta > 0 {
		s = append(s, Entry{"v", a.New(wide(p), p.Value.Rows()), p.Value.Cols()})
	}
	return s
}

// Update implements Optimizer.
func (o *Muon) Update(d device.Device, p *nn.Param, state State, s Step, scratch *tensor.Arena) {
	if !o.Orthogonalises(p) {
		o.Rest.Update(d, p, state, s, scratch)
		return
	}
	momentum := cmp.Or(s.Momentum, o.Momentum)
	fresh := device.Combination{X: momentum, Y: (1 - momentum) * s.Scale}
	d.Combine(&state[0].Tensor, &state[0].Tensor, &p.Grad, fresh)
	from := 0
	for _, part := range parts(p) {
		to := from + part.Rows
		o.value, o.grad, o.momentum = p.Value.Slice(from, to), p.Grad.Slice(from, to), state[0].Slice(from, to)
		mark := scratch.Mark()
		o.update = scratch.New(wide(p), part.Rows, p.Value.Cols())
		d.Combine(&o.update, &o.momentum, &o.grad, fresh)
		u := o.work.Run(o.Iteration, d, &o.update, scratch)
		rate := s.LR * o.Scale(part.Rows, p.Value.Cols())
		if o.RowBeta > 0 {
			o.mean = state[1].Slice(from, to)
			norm := o.work.norm(d, u)
			d.EqualiseRows(u, &o.mean, o.RowBeta)
			rate *= norm / (o.work.norm(d, u) + 1e-10)
		}
		d.Descend(&o.value, u, device.Descend{LR: rate, Shrink: s.LR * s.Decay, Cautious: s.Cautious})
		scratch.Release(mark)
		from = to
	}
}

// FLOPs returns the operations of one step's orthogonalisations of the parameters.
func (o *Muon) FLOPs(params []*nn.Param) float64 {
	sum := 0.0
	for _, p := range params {
		if o.Orthogonalises(p) {
			for _, part := range parts(p) {
				sum += o.Iteration.FLOPs(part.Rows, p.Shape[1])
			}
		}
	}
	return sum
}
