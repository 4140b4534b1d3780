package vec

import (
	"anneal/internal/isa"
	"anneal/tensor"
)

// Float is an element type of rows.
type Float interface{ float32 | float64 }

// A Table holds the primitives of one tier. The first slice gives the length n; every other slice must hold at least
// n elements, which the assembly does not check. A destination may be one of its sources, but must not overlap one
// otherwise. No primitive reads or writes past n, and none allocates.
type Table[T Float] struct {
	Add    func(dst, x []T)            // dst += x
	Axpy   func(dst, x []T, a T)       // dst += a·x
	Scale  func(dst, x []T, a T)       // dst = a·x
	Mul    func(dst, a, b []T)         // dst = a·b, elementwise
	Mix    func(dst, x, y []T, a, b T) // dst = a·x + b·y
	MulAdd func(dst, a, b []T)         // dst += a·b, elementwise
	Centre func(dst, x []T, mean, a T) // dst = a·(x − mean)
	Dot    func(a, b []T) T            // Σ a·b
	Max    func(x []T) T               // the largest element, −Inf for none; unspecified if one is NaN
	Sum    func(x []T) float64         // Σ x, added in float64
	SumSq  func(x []T) float64         // Σ x², added in float64
	ExpSum func(dst, x []T, shift T) T // dst = exp(x − shift); returns Σ dst

	Softcap func(dst, x []T, c T) // dst = c·tanh(x/c)
	// ELU1 is dst = elu(x) + 1 = max(x, 0) + e^min(x, 0), and slope its derivative, e^min(x, 0).
	ELU1 func(dst, slope, x []T)

	// Rotate rotates the pairs (a, b) by the angles of cos and sin: a, b = a·cos − b·sin, a·sin + b·cos.
	Rotate func(a, b, cos, sin []T)
	// RotatePairs is Rotate on neighbouring elements: x[2i] and x[2i+1].
	RotatePairs func(x, cos, sin []T)
	// SwiGLU is dst = silu(gate)·up, silu(x) = x/(1+exp(−x)).
	SwiGLU func(dst, gate, up []T)
	// SwiGLUGrad is dup = dact·silu(gate), dgate = dact·up·silu'(gate), and act = silu(gate)·up, with the same bits
	// as SwiGLU. If act is not needed, it may be dgate.
	SwiGLUGrad func(dgate, dup, act, dact, gate, up []T)
	// ReLUSquared is dst = max(x, 0)², ReLUSquaredGrad is dx = 2·max(x, 0)·dact.
	ReLUSquared     func(dst, x []T)
	ReLUSquaredGrad func(dx, dact, x []T)
	// GeGLU and GeGLUGrad are SwiGLU and SwiGLUGrad with gelu for silu; see geglu.go.
	GeGLU     func(dst, gate, up []T)
	GeGLUGrad func(dgate, dup, act, dact, gate, up []T)
	// GELU is dst = gelu(x), GELUGrad dx = dact·gelu'(x); see gelu.go.
	GELU     func(dst, x []T)
	GELUGrad func(dx, dact, x []T)
	// Updates holds the steps of optimizers.
	Updates[T]
	// Mask writes a row of random factors: Scale with probability Keep/65536, else 0; see mask.go. The length must be
	// a multiple of 128.
	Mask func(dst []T, m *Mask[T])
	// Halves writes the 16-bit numbers that determine a Mask.
	Halves func(dst []uint32, m *Mask[T])

	// Pack rounds to bfloat16, ties to even, NaN to quiet NaN. Unpack widens.
	Pack   func(dst []tensor.BFloat16, src []T)
	Unpack func(dst []T, src []tensor.BFloat16)

	// PackStochastic rounds to bfloat16: up where the lower half of a number plus the 16-bit random number carries.
	PackStochastic func(dst []tensor.BFloat16, src []T, random []uint32)

	// PackInt8 rounds scale·src to multiples of 65536 by 16-bit random numbers, and stores the factors; UnpackInt8 is
	// dst = scale·codes. See int8.go.
	PackInt8   func(codes []byte, src []T, random []uint32, scale T)
	UnpackInt8 func(dst []T, codes []byte, scale T)

	// PackF16 rounds to float16, ties to even, NaN to quiet NaN. UnpackF16 widens.
	PackF16   func(dst []tensor.Float16, src []T)
	UnpackF16 func(dst []T, src []tensor.Float16)

	// MaxAbs returns the largest magnitude: NaN if an element is NaN, 0 for no elements.
	MaxAbs func(x []T) T
	// Quantize rounds g.Scale·src to an FP8 grid, whose values bfloat16 represents exactly.
	Quantize func(dst []tensor.BFloat16, src []T, g *Grid[T])

	// Narrow is nil in the portable tier.
	Narrow *Narrow[T]
}

// Narrow holds the primitives on rows of bfloat16 in one pass; separate passes to widen, compute and round would take
// twice as long. The results are the same. The length must be a multiple of Multiple.
type Narrow[T Float] struct {
	Multiple int

	// SwiGLU, ReLUSquared and their gradients are those of Table.
	SwiGLU          func(dst, gate, up []tensor.BFloat16)
	SwiGLUGrad      func(dgate, dup, act, dact, gate, up []tensor.BFloat16)
	ReLUSquared     func(dst, x []tensor.BFloat16)
	ReLUSquaredGrad func(dx, dact, x []tensor.BFloat16)
	// GeGLU, GELU and their gradients are those of Table.
	GeGLU     func(dst, gate, up []tensor.BFloat16)
	GeGLUGrad func(dgate, dup, act, dact, gate, up []tensor.BFloat16)
	GELU      func(dst, x []tensor.BFloat16)
	GELUGrad  func(dx, dact, x []tensor.BFloat16)
	// Normalise is xhat = r·x, y = xhat·gain; y is computed from the rounded xhat. Mul is the second part alone.
	Normalise func(y, xhat []tensor.BFloat16, x, gain []T, r T)
	Mul       func(y, xhat []tensor.BFloat16, gain []T)
	// NormDot is dgain += dy·xhat; it returns Σ gain·dy·xhat. NormGrad is dx += r·(gain·dy − mean·xhat).
	NormDot  func(dgain []T, dy, xhat []tensor.BFloat16, gain []T) T
	NormGrad func(dx []T, dy, xhat []tensor.BFloat16, gain []T, r, mean T)
	// Rotate is Table's, on consecutive heads in memory, each with halves a and b. cos gives the length.
	Rotate func(cos, sin []T, a, b []tensor.BFloat16, heads int)
	// RotatePairs is Table's, on consecutive heads in memory.
	RotatePairs func(cos, sin []T, x []tensor.BFloat16, heads int)

	NarrowLayerNorm[T]
}

// A Grid describes the values of an FP8 format, in the order in which the assembly reads them. Values beyond ±Top
// saturate at ±Top; non-finite values give NaN. The spacing of the grid at y is 2⁻²³·Magic·max(Least,
// 2^⌊log₂|y|⌋)/1.5; adding and subtracting Magic times that power rounds to it.
type Grid[T Float] struct {
	Scale T
	Top   T // the largest number
	Least T // the smallest normal number
	Magic T // 1.5·2^(23−m) for m bits of mantissa
}

// Float32 returns the tier's primitives. The avx512bf16 tier uses those of avx512: its conversion instruction would
// flush subnormals, and the integer conversion is already faster than memory.
func Float32(tier isa.Tier) Table[float32] { return float32Table(tier) }

// Float64 returns the primitives of the reference mode, pure Go on every tier.
func Float64() Table[float64] { return generic(math64) }
