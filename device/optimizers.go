package device

import "anneal/tensor"

// Optimizers are the kernels of optimizer steps. Each updates the parameter p in place from its state and its
// gradient g, scaled to g' = Scale·g. Unless documented otherwise, all tensors of a call are F32 and have the same
// shape. Subnormal numbers may count as 0. An update u is subtracted from p together with the decay:
//
//	p ← p·(1 − LR·Decay) − u, with Cautious without the decay where u·p < 0
type Optimizers interface {
	// AdamW keeps the moments m and v. With Beta1 = 0, m may be g.
	AdamW(p, g, m, v *tensor.Tensor, o AdamW)
	// AdamW8 keeps the moments in 8 bits: m and v (U8) index the values of tensor.Dynamic8, signed for m, as
	// fractions of the largest magnitude in their block of Block elements, mTop and vTop. The update uses the moments
	// before rounding.
	AdamW8(p, g, m, mTop, v, vTop *tensor.Tensor, o AdamW)
	// Momentum keeps the running sum m.
	Momentum(p, g, m *tensor.Tensor, o Momentum)
	// Lion keeps the momentum m.
	Lion(p, g, m *tensor.Tensor, o Lion)
	// AdEMAMix keeps the fast moment m1, the slow one m2, and the second moment v.
	AdEMAMix(p, g, m1, m2, v *tensor.Tensor, o AdEMAMix)
	// Adafactor keeps v, the mean of squares, with the shape of p; or, if c is not nil, for a matrix p [R, C], the
	// means v [R] over rows and c [C] over columns. It keeps the running mean of updates m unless m is nil.
	Adafactor(p, g, m, v, c *tensor.Tensor, o Adafactor)
	// Sophia keeps the momentum m and reads the curvature h. It returns the number of elements that moved by less
	// than LR, that is, were not clipped.
	Sophia(p, g, m, h *tensor.Tensor, o Sophia) int
	// MeanSquare updates a running mean of squares: h ← Beta·h + Weight·g². Both are F32.
	MeanSquare(h, g *tensor.Tensor, beta, weight float64)
	// Anchor moves p towards start, by weight w: p ← (p + Rate·w·start) / (1 + Rate·w). All are F32.
	Anchor(p, start, weight *tensor.Tensor, rate float64)
	// EqualiseRows divides each row of u [M, N] by the root of a running mean of its mean square, v [M]:
	// v ← Beta·v + (1−Beta)·mean(u²); u ← u / (sqrt(v) + 1e-10). Both are F32.
	EqualiseRows(u, v *tensor.Tensor, beta float64)
	// Descend applies the update LR·u.
	Descend(p, u *tensor.Tensor, o Descend)
}

// Block is the number of elements that share a scale in 8-bit states.
const Block = 256

// AdamW holds the constants of one step (Loshchilov & Hutter 2017, arXiv 1711.05101):
//
//	m ← β1·m + (1−β1)·g';  v ← β2·v + (1−β2)·g'²;  u = LR · (m·Correct1) / (sqrt(v·Correct2) + Eps)
type AdamW struct {
	LR, Beta1, Beta2, Eps, Decay float64
	Cautious                     bool
	Coupled                      bool    // Adam: Decay·p is added to g' instead
	Scale                        float64 // of the gradient: 1/tokens and the clip coefficient
	Correct1, Correct2           float64 // bias corrections 1/(1−β1ᵗ) and 1/(1−β2ᵗ)
}

// Momentum holds the constants of one step (Sutskever et al. 2013), as in PyTorch:
//
//	g' = Scale·g + Decay·p;  m ← Beta·m + Keep·g';  u = LR·m, or LR·(g' + Beta·m) with Nesterov
type Momentum struct {
	LR, Beta, Keep, Decay, Scale float64
	Nesterov                     bool
}

// Lion holds the constants of one step (Chen et al. 2023, arXiv 2302.06675), with sign(0) = 0:
//
//	u = LR · sign(β1·m + (1−β1)·g');  m ← β2·m + (1−β2)·g'
type Lion struct {
	LR, Beta1, Beta2, Decay float64
	Cautious                bool
	Scale                   float64
}

// AdEMAMix holds the constants of one step (Pagliardini et al. 2024, arXiv 2409.03137):
//
//	m1 ← β1·m1 + (1−β1)·g';  m2 ← β3·m2 + (1−β3)·g';  v ← β2·v + (1−β2)·g'²
//	u = LR · (m1·Correct1 + Alpha·m2) / (sqrt(v·Correct2) + Eps)
type AdEMAMix struct {
	LR, Beta1, Beta2, Beta3, Alpha, Eps, Decay float64
	Cautious                                   bool
	Scale                                      float64
	Correct1, Correct2                         float64
}

// Adafactor holds the constants of one step (Shazeer & Stern 2018, arXiv 1804.04235):
//
//	v ← β2·v + (1−β2)·(g'² + Eps), or factored: of v [R, C] only the means over columns, v, and over rows, c
//	U = g'/sqrt(v), or factored U_ij = g'_ij / sqrt(v_i·c_j / mean(v));  U ← U / max(1, RMS(U)/Clip)
//	u = LR · max(MinScale, RMS(p)) · U, or with Absolute u = LR·U;  with m: m ← β1·m + (1−β1)·u, u = m
//	p ← p·(1 − Shrink) − u, with Cautious without the decay where u·p < 0
type Adafactor struct {
	LR, Beta1, Beta2, Eps, Clip float64
	Absolute                    bool
	MinScale, Shrink            float64
	Cautious                    bool
	Scale                       float64
}

// Sophia holds the constants of one step (Liu et al. 2023, arXiv 2305.14342):
//
//	m ← β1·m + (1−β1)·g';  u = LR · sign(m)·min(|m| / (ρ·h + 1e-15), 1)
type Sophia struct {
	LR, Beta1, Rho, Decay float64
	Cautious              bool
	Scale                 float64
}

// Descend controls how an update is subtracted from a parameter.
type Descend struct {
	LR       float64 // factor of the update
	Shrink   float64 // LR·Decay: the share of a weight that one step removes
	Cautious bool
}
