package optim

import (
	"math"

	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// Adafactor stores only the row and column means of a matrix's second moment (Shazeer & Stern 2018, arXiv
// 1804.04235), and scales its step by the size of the weights:
//
//	v ← β2·v + (1−β2)·(g² + ε1), β2 = 1 − t^−0.8;  factored: v_ij = r_i·c_j / mean(r)
//	U = g/√v;  U ← U / max(1, RMS(U));  w ← w·(1 − lr·λ) − α·U, α = max(ε2, RMS(w)) · min(lr, 1/√t)
//
// With β1 > 0 it steps along a running mean of α·U instead. The parts of a fused weight are factored separately.
// State: 4·(R+C) bytes for an R×C matrix, almost nothing; 4 bytes per parameter for gains and biases. Defaults: T5's
// (Raffel et al. 2019) are lr = 1e-2, the relative step min(lr, 1/√t), no momentum; PaLM's (Chowdhery et al. 2022)
// keep v unfactored, β1 = 0.9, and decay by lr²: 8 bytes per parameter. ε1 = 1e-30, ε2 = 1e-3. Not where memory
// allows AdamW: on language models Adafactor learns a little slower, and its learning rate has another meaning than
// AdamW's.
type Adafactor struct {
	Beta1        float64 // 0 for no momentum
	Whole        bool    // keep v unfactored
	RelativeStep bool    // min(lr, 1/√t) instead of lr
	Unscaled     bool    // α without RMS(w): lr is absolute, as in other optimizers
	DecayByRate  bool    // decay by lr² · λ instead of lr · λ

	view struct{ p, g, m tensor.Tensor } // the part being updated; kept here so that no step allocates
}

// Layout implements Optimizer: the factors r and c of each part of a matrix, or v for other parameters; m with
// momentum.
func (o *Adafactor) Layout(a *tensor.Arena, p *nn.Param) State {
	var s State
	if !o.factors(p) {
		s = State{like(a, "v", p)}
	} else {
		for _, part := range parts(p) {
			dot := ""
			if part.Name != "" {
				dot = "."
			}
			s = append(s, Entry{"r" + dot + part.Name, a.New(wide(p), part.Rows), 0},
				Entry{"c" + dot + part.Name, a.New(wide(p), p.Value.Cols()), 0})
		}
	}
	if o.Beta1 > 0 {
		s = append(s, like(a, "m", p))
	}
	return s
}

func (o *Adafactor) factors(p *nn.Param) bool { return !o.Whole && p.Value.Rank() == 2 }

// parts returns the parts of a matrix, or the matrix itself as the only part.
func parts(p *nn.Param) []nn.Part {
	if p.Parts == nil {
		return []nn.Part{{Rows: p.Value.Rows()}}
	}
	return p.Parts
}

// Update implements Optimizer.
func (o *Adafactor) Update(d device.Device, p *nn.Param, state State, s Step, _ *tensor.Arena) {
	rate := s.LR
	if o.RelativeStep {
		rate = min(rate, 1/math.Sqrt(float64(s.T)))
	}
	c := device.Adafactor{
		LR: rate, Beta1: o.Beta1, Beta2: 1 - math.Pow(float64(s.T), -0.8), Eps: 1e-30, Clip: 1,
		Absolute: o.Unscaled, MinScale: 1e-3, Shrink: s.LR * s.Decay, Cautious: s.Cautious, Scale: s.Scale,
	}
	if o.DecayByRate {
		c.Shrink = rate * rate * s.Decay
	}
	var m *tensor.Tensor
	if o.Beta1 > 0 {
		m = &state[len(state)-1].Tensor
	}
	if !o.factors(p) {
		d.Adafactor(&p.Value, &p.Grad, m, &state[0].Tensor, nil, c)
		return
	}
	rows := 0
	for i := range max(len(p.Parts), 1) {
		from, to := rows, p.Value.Rows()
		if p.Parts != nil {
			to = from + p.Parts[i].Rows
		}
		rows = to
		v := &o.view
		v.p, v.g = p.Value.Slice(from, to), p.Grad.Slice(from, to)
		part := m
		if m != nil {
			v.m = m.Slice(from, to)
			part = &v.m
		}
		d.Adafactor(&v.p, &v.g, part, &state[2*i].Tensor, &state[2*i+1].Tensor, c)
	}
}
