package model

import (
	"math"

	"anneal/nn"
)

// The maximal update parametrisation, muP (Yang et al. 2022, arXiv 2203.03466): hyperparameters tuned on a narrow
// model, above all the learning rate, are also optimal for a wide one, because the size of every activation and of
// its change per update does not depend on the width. With m = D/D₀ the growth over the base model and m_in that of a
// matrix's input (F/F₀ for mlp.down):
//
//	              initial std           learning rate (Adam)   decay    forward
//	tables        σ                     η                      λ        embedding × α_in; logits × α_out/m
//	matrices      σ/√m_in               η/m_in                 λ·m_in
//	gains         1                     η                      0
//	attention                                                           scores × √E₀/E instead of 1/√E
//
// With a base depth L₀ it is CompleteP (Dey et al. 2025, arXiv 2505.01618) with α = 1, where the best learning rate
// also holds for another depth: every branch is multiplied by 1/m_L = L₀/L. Here that factor is part of the matrices
// that write to the residual stream: they start m_L times smaller than at depth L₀ and have the rate η/(m_in·m_L) and
// the decay λ·m_in·m_L. For Adam, whose step does not depend on the size of gradients, both are equivalent. Adam's ε
// shrinks as the gradients do: ε/(m_in·m_L) for matrices, but ε/m_in for those that write to the stream, since being
// m_L times smaller they have gradients that are m_L times larger.
//
// With m = 1 it equals the standard parametrisation, bit for bit. It costs no memory except one more gain [D] on the
// tape. Not for a single width, where it only rescales the learning rate. It does not make the
// best learning rate independent of batch size and length of training.

// widthGrowth returns m, the growth of the residual stream. Queries and keys grow with it, by more or by larger heads.
func (c Config) widthGrowth() float64 {
	if !c.MuP {
		return 1
	}
	return float64(c.Dim) / float64(c.MuPBaseDim)
}

// depthGrowth returns m_L, the growth of the number of layers, or 1 without a base depth.
func (c Config) depthGrowth() float64 {
	if !c.MuP || c.MuPBaseLayers == 0 {
		return 1
	}
	return float64(c.Layers) / float64(c.MuPBaseLayers)
}

// inputScale returns the factor of the embedding.
func (c Config) inputScale() float64 {
	if !c.MuP {
		return 1
	}
	return c.MuPInputScale
}

// logitScale returns the factor of the final norm, and so of every logit.
func (c Config) logitScale() float64 {
	if !c.MuP {
		return 1
	}
	return c.MuPOutputScale / c.widthGrowth()
}

// scoreScale returns device.Heads.Scale: 0, the default, if the base model has heads of the same size.
func (c Config) scoreScale() float64 {
	if !c.MuP || c.MuPBaseHeadDim == c.HeadDim {
		return 0
	}
	return math.Sqrt(float64(c.MuPBaseHeadDim)) / float64(c.HeadDim)
}

// baseDim returns the width of the base model; without muP, the model's own.
func (c Config) baseDim() int {
	if !c.MuP {
		return c.Dim
	}
	return c.MuPBaseDim
}

// An UpdateRule classifies how the updates of an optimizer grow with a matrix, which determines how muP scales its
// learning rate.
type UpdateRule int

const (
	PerElement UpdateRule = iota // each element moves by about the learning rate: adam, lion and similar
	Gradient                     // the step is proportional to the gradient: sgd
	// a step of a matrix has spectral norm √(out/in) at any size: muon; other parameters are PerElement
	Spectral
)

// ScaleRates sets muP's factors of the learning rate and the decay of each parameter. Their product stays constant,
// so that decay has the same strength at every width. Without muP all factors are 1.
func (m *Decoder) ScaleRates(rule UpdateRule) {
	for _, p := range m.params {
		p.LRScale = rateScale(p, rule)
		p.DecayScale = 1 / p.LRScale
		if m.Config.MuP && m.Config.MuPBaseLayers > 0 && p.Role == nn.Matrix {
			p.EpsScale = p.Growth.Depth / (p.Growth.In * m.Config.depthGrowth())
		}
	}
}

func rateScale(p *nn.Param, rule UpdateRule) float64 {
	g := p.Growth
	switch {
	case rule == Gradient && p.Role == nn.Matrix:
		// the gradient does not shrink with depth, so the step must shrink by its square
		return g.Out / g.In / (g.Depth * g.Depth)
	case rule == Gradient:
		return g.Out * g.In / (g.Depth * g.Depth) // the side that grows
	case rule == PerElement && p.Role == nn.Matrix:
		return 1 / g.In / g.Depth
	}
	return 1 / g.Depth
}
