package model

import (
	"math"

	"anneal/nn"
)

// MuP is the maximal update parametrisation (Yang et al. 2022, arXiv 2203.03466): what is tuned on a narrow model holds for
// a wide one, above all the learning rate, because every activation and its change by an update keep their size while the
// width grows. With m = D/D₀ the growth over the base model and m_in that of a matrix's input (F/F₀ for mlp.down):
//
//	              initial std           learning rate (Adam)   decay    forward
//	tables        σ                     η                      λ        embedding × α_in; logits × α_out/m
//	matrices      σ/√m_in               η/m_in                 λ·m_in
//	gains         1                     η                      0
//	attention                                                           scores × √E₀/E instead of 1/√E
//
// With a base depth L₀ it is CompleteP (Dey et al. 2025, arXiv 2505.01618) with α = 1, by which the best rate holds for another
// depth, too: every branch counts 1/m_L = L₀/L. Here that factor is in the matrices that write to the residual stream, which start
// m_L times smaller than at depth L₀ and have the rate η/(m_in·m_L) and the decay λ·m_in·m_L; for Adam, whose step does not go by
// the size of gradients, both are the same. Adam's ε is left as it is.
//
// With m = 1 all of it is the standard parametrisation, bit for bit. It costs no memory but one more gain [D] on the tape.
// The zero value is off. It is not for a single width, where it only renames the learning rate, and it does not make the
// best rate independent of batch and length of training.
type MuP struct {
	Dim     int // D₀ of the base model; 0 is the standard parametrisation
	HeadDim int // E₀
	FFN     int // F₀
	Layers  int // L₀; 0 leaves depth alone

	InputScale, OutputScale float64 // α_in and α_out
}

func (p MuP) on() bool { return p.Dim != 0 }

// width returns m, the growth of the residual stream; queries and keys grow with it, by more heads or by larger ones.
func (p MuP) width(c Config) float64 {
	if !p.on() {
		return 1
	}
	return float64(c.Dim) / float64(p.Dim)
}

// depth returns m_L, the growth of the number of layers, or 1 if it is left alone.
func (p MuP) depth(c Config) float64 {
	if p.Layers == 0 {
		return 1
	}
	return float64(c.Layers) / float64(p.Layers)
}

// inputScale returns what the embedding is multiplied by.
func (p MuP) inputScale() float64 {
	if !p.on() {
		return 1
	}
	return p.InputScale
}

// logitScale returns what the final norm, and so every logit, is multiplied by.
func (c Config) logitScale() float64 {
	if !c.MuP.on() {
		return 1
	}
	return c.MuP.OutputScale / c.MuP.width(c)
}

// scoreScale returns device.Heads.Scale: 0, the usual, where the base model has heads of the same size.
func (c Config) scoreScale() float64 {
	if !c.MuP.on() || c.MuP.HeadDim == c.HeadDim {
		return 0
	}
	return math.Sqrt(float64(c.MuP.HeadDim)) / float64(c.HeadDim)
}

// baseDim is the width of the base model: the model's own without muP.
func (c Config) baseDim() int {
	if !c.MuP.on() {
		return c.Dim
	}
	return c.MuP.Dim
}

// An UpdateRule says how the updates of an optimizer grow with a matrix, which decides how muP scales its learning rate.
type UpdateRule int

const (
	PerElement UpdateRule = iota // each element moves by about the learning rate: adam, lion and their kin
	Gradient                     // the step is proportional to the gradient: sgd
	Spectral                     // a step of a matrix has the spectral norm √(out/in), whatever its size: muon; the rest is PerElement
)

// ScaleRates sets the factors that muP puts on the learning rate and the decay of each parameter. The product of both stays
// what it is, so that decay is as strong at every width. Without muP all factors are 1.
func (m *Decoder) ScaleRates(rule UpdateRule) {
	for _, p := range m.params {
		p.LRScale = rateScale(p, rule)
		p.DecayScale = 1 / p.LRScale
	}
}

func rateScale(p *nn.Param, rule UpdateRule) float64 {
	g := p.Growth
	switch {
	case rule == Gradient && p.Role == nn.Matrix:
		return g.Out / g.In / (g.Depth * g.Depth) // the gradient has not shrunk, and so the step shrinks twice
	case rule == Gradient:
		return g.Out * g.In / (g.Depth * g.Depth) // the side that grows
	case rule == PerElement && p.Role == nn.Matrix:
		return 1 / g.In / g.Depth
	}
	return 1 / g.Depth
}
