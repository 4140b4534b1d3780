package vec

// GELU (Hendrycks & Gimpel 2016, arXiv 1606.08415) by the formula of GPT-2, which approximates x·Φ(x) by tanh.
// Because (1 + tanh u)/2 is the sigmoid σ(2u), every tier computes it with one exponential:
//
//	gelu(x)  = ½·x·(1 + tanh(√(2/π)·(x + 0.044715·x³))) = x·σ(v),  v = A·x + B·x³
//	gelu'(x) = σ + x·σ·(1 − σ)·(A + 3·B·x²),  1 − σ = e⁻ᵛ·σ
//
// The derivative uses x clamped to ±geluHigh, where it is 1, or 0 within 1e-35. This avoids an overflow of x² times a
// σ·(1 − σ) of 0.
const (
	geluA    = 1.5957691216057308 // 2·√(2/π)
	geluB    = 0.044715 * geluA   // 0.0713548…
	geluHigh = 10
)

func (f functions[T]) gelu(dst, x []T) {
	x = x[:len(dst)]
	for i := range dst {
		v := x[i]
		dst[i] = v / (1 + f.exp(v*(-geluB*(v*v)-geluA)))
	}
}

func (f functions[T]) geluGrad(dx, dact, x []T) {
	dact, x = dact[:len(dx)], x[:len(dx)]
	for i := range dx {
		v := max(min(x[i], geluHigh), -geluHigh)
		square := v * v
		e := f.exp(v * (-geluB*square - geluA))
		s := 1 / (1 + e)
		dx[i] = dact[i] * (s + v*(e*s*s)*(3*geluB*square+geluA))
	}
}
