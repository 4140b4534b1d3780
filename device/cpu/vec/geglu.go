package vec

// GeGLU (Shazeer 2020, arXiv 2002.05202) with the GELU of gelu.go on the gate g, clamped from below:
//
//	geglu(g, up) = x·σ(A·x + B·x³)·up,  x = max(g, −geluHigh)
//
// Below −geluHigh the result is then −1e-37·up instead of 0, and forward and backward share one exponential that never
// overflows. The derivative by g is gelu's.

func (f functions[T]) geGLU(dst, gate, up []T) {
	gate, up = gate[:len(dst)], up[:len(dst)]
	for i := range dst {
		v := max(gate[i], -geluHigh)
		s := 1 / (1 + f.exp(v*(-geluB*(v*v)-geluA)))
		dst[i] = v * s * up[i]
	}
}

func (f functions[T]) geGLUGrad(dgate, dup, act, dact, gate, up []T) {
	n := len(dgate)
	dup, act, dact, gate, up = dup[:n], act[:n], dact[:n], gate[:n], up[:n]
	for i := range dgate {
		v, u, d := max(gate[i], -geluHigh), up[i], dact[i]
		x := min(v, geluHigh)
		square := x * x
		e := f.exp(x * (-geluB*square - geluA))
		s := 1 / (1 + e) // 1 above geluHigh, as in geGLU
		a := v * s
		act[i] = a * u
		dgate[i] = d * u * (s + x*(e*s*s)*(3*geluB*square+geluA))
		dup[i] = d * a
	}
}
