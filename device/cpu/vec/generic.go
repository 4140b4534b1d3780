package vec

import (
	"math"

	"anneal/tensor"
)

// functions holds the functions that the generic primitives need for an element type.
type functions[T Float] struct{ exp, sqrt, tanh func(T) T }

var (
	math64 = functions[float64]{math.Exp, math.Sqrt, math.Tanh}
	math32 = functions[float32]{exp32, func(x float32) float32 { return float32(math.Sqrt(float64(x))) }, tanh32}
)

// generic returns the tier in pure Go: the definition of every primitive, and the oracle of the assembly's tests.
func generic[T Float](f functions[T]) Table[T] {
	return Table[T]{
		Add: add[T], Axpy: axpy[T], Scale: scale[T], Mul: mul[T], Mix: mix[T], MulAdd: mulAdd[T], Centre: centre[T],
		Dot: dot[T], Max: maximum[T], Sum: sum[T], SumSq: sumSq[T],
		ExpSum:          f.expSum,
		Softcap:         f.softcap,
		ELU1:            f.elu1,
		Rotate:          rotate[T],
		RotatePairs:     rotatePairs[T],
		SwiGLU:          f.swiGLU,
		SwiGLUGrad:      f.swiGLUGrad,
		ReLUSquared:     reluSquared[T],
		ReLUSquaredGrad: reluSquaredGrad[T],
		GeGLU:           f.geGLU,
		GeGLUGrad:       f.geGLUGrad,
		GELU:            f.gelu,
		GELUGrad:        f.geluGrad,
		Updates:         f.updates(),
		Mask:            mask[T],
		Pack:            pack[T],
		Unpack:          unpack[T],
		PackF16:         packF16[T],
		Halves:          halves[T],
		PackStochastic:  packStochastic[T],
		UnpackF16:       unpackF16[T],
		PackInt8:        packInt8[T],
		UnpackInt8:      unpackInt8[T],
		MaxAbs:          maxAbs[T],
		Quantize:        quantize[T],
	}
}

func add[T Float](dst, x []T) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] += x[i]
	}
}

func axpy[T Float](dst, x []T, a T) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] += a * x[i]
	}
}

func scale[T Float](dst, x []T, a T) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = a * x[i]
	}
}

func mul[T Float](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] * b[i]
	}
}

func mix[T Float](dst, x, y []T, a, b T) {
	x, y = x[:len(dst)], y[:len(dst)]
	for i := range dst {
		dst[i] = a*x[i] + b*y[i]
	}
}

func mulAdd[T Float](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] += a[i] * b[i]
	}
}

// Four running sums shorten the dependency chains and reduce the rounding error.
func dot[T Float](a, b []T) T {
	b = b[:len(a)]
	var s [4]T
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s[0] += a[i] * b[i]
		s[1] += a[i+1] * b[i+1]
		s[2] += a[i+2] * b[i+2]
		s[3] += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s[0] += a[i] * b[i]
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

func maximum[T Float](x []T) T {
	m := T(math.Inf(-1))
	for _, v := range x {
		if v > m {
			m = v
		}
	}
	return m
}

func sum[T Float](x []T) float64 {
	s := 0.0
	for _, v := range x {
		s += float64(v)
	}
	return s
}

func sumSq[T Float](x []T) float64 {
	s := 0.0
	for _, v := range x {
		s += float64(v) * float64(v)
	}
	return s
}

func (f functions[T]) expSum(dst, x []T, shift T) T {
	x = x[:len(dst)]
	var s [4]T
	for i := range dst {
		e := f.exp(x[i] - shift)
		dst[i] = e
		s[i&3] += e
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

func (f functions[T]) softcap(dst, x []T, c T) {
	x = x[:len(dst)]
	inverse := 1 / c
	for i := range dst {
		dst[i] = c * f.tanh(x[i]*inverse)
	}
}

func rotate[T Float](a, b, cos, sin []T) {
	b, cos, sin = b[:len(a)], cos[:len(a)], sin[:len(a)]
	for i := range a {
		x, y, c, s := a[i], b[i], cos[i], sin[i]
		a[i] = x*c - y*s
		b[i] = x*s + y*c
	}
}

func rotatePairs[T Float](x, cos, sin []T) {
	cos, sin = cos[:len(x)/2], sin[:len(x)/2]
	for i, c := range cos {
		a, b, s := x[2*i], x[2*i+1], sin[i]
		x[2*i] = a*c - b*s
		x[2*i+1] = a*s + b*c
	}
}

func (f functions[T]) swiGLU(dst, gate, up []T) {
	gate, up = gate[:len(dst)], up[:len(dst)]
	for i := range dst {
		g := gate[i]
		s := 1 / (1 + f.exp(-g))
		dst[i] = g * s * up[i]
	}
}

func (f functions[T]) swiGLUGrad(dgate, dup, act, dact, gate, up []T) {
	n := len(dgate)
	dup, act, dact, gate, up = dup[:n], act[:n], dact[:n], gate[:n], up[:n]
	for i := range dgate {
		g, u, d := gate[i], up[i], dact[i]
		s := 1 / (1 + f.exp(-g))
		a := g * s
		act[i] = a * u
		dgate[i] = d * u * (s + a*(1-s))
		dup[i] = d * a
	}
}

func reluSquared[T Float](dst, x []T) {
	x = x[:len(dst)]
	for i, v := range x {
		if v < 0 {
			v = 0
		}
		dst[i] = v * v
	}
}

func reluSquaredGrad[T Float](dx, dact, x []T) {
	dact, x = dact[:len(dx)], x[:len(dx)]
	for i, v := range x {
		if v < 0 {
			v = 0
		}
		dx[i] = (v + v) * dact[i]
	}
}

func pack[T Float](dst []tensor.BFloat16, src []T) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = tensor.BF16FromFloat32(float32(src[i]))
	}
}

func unpack[T Float](dst []T, src []tensor.BFloat16) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = T(src[i].Float32())
	}
}

func packStochastic[T Float](dst []tensor.BFloat16, src []T, random []uint32) {
	src, random = src[:len(dst)], random[:len(dst)]
	for i := range dst {
		dst[i] = tensor.BF16Stochastic(float32(src[i]), random[i])
	}
}

func packF16[T Float](dst []tensor.Float16, src []T) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = tensor.F16FromFloat32(float32(src[i]))
	}
}

func unpackF16[T Float](dst []T, src []tensor.Float16) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = T(src[i].Float32())
	}
}

func maxAbs[T Float](x []T) T {
	var m T
	for _, v := range x {
		if v < 0 {
			v = -v
		}
		if v > m || v != v {
			m = v
		}
		if m != m {
			return m
		}
	}
	return m
}

func quantize[T Float](dst []tensor.BFloat16, src []T, g *Grid[T]) {
	src = src[:len(dst)]
	top, least, magic := float32(g.Top), float32(g.Least), float32(g.Magic)
	for i := range dst {
		y := float32(g.Scale * src[i])
		r := max(-top, min(top, y))
		step := max(math.Float32frombits(math.Float32bits(r)&0x7f800000), least)
		step = float32(step * magic)
		r = r + step - step
		r += y - y // NaN where y is not finite
		dst[i] = tensor.BFloat16((math.Float32bits(r) | math.Float32bits(y)&0x80000000) >> 16)
	}
}
