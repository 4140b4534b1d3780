package vec

import (
	"math"

	"anneal/device/cpu/isa"
	"anneal/tensor"
)

func float32Table(tier isa.Tier) Table[float32] {
	switch {
	case tier >= isa.AVX512:
		return Table[float32]{
			Add: addAVX512, Axpy: axpyAVX512, Scale: scaleAVX512, Mul: mulAVX512, MulAdd: mulAddAVX512,
			Dot: dotAVX512, Max: maximumAVX512, Sum: sumAVX512, SumSq: sumSqAVX512,
			ExpSum: expSumAVX512, Rotate: rotateAVX512, SwiGLU: swiGLUAVX512, SwiGLUGrad: swiGLUGradAVX512, AdamW: adamWAVX512,
			Pack: packAVX512, Unpack: unpackAVX512,
		}
	case tier == isa.AVX2:
		return Table[float32]{
			Add: addAVX2, Axpy: axpyAVX2, Scale: scaleAVX2, Mul: mulAVX2, MulAdd: mulAddAVX2,
			Dot: dotAVX2, Max: maximumAVX2, Sum: sumAVX2, SumSq: sumSqAVX2,
			ExpSum: expSumAVX2, Rotate: rotateAVX2, SwiGLU: swiGLUAVX2, SwiGLUGrad: swiGLUGradAVX2, AdamW: adamWAVX2,
			Pack:   func(dst []tensor.BFloat16, src []float32) { packAVX2(dst, src); packRest(dst, src) },
			Unpack: func(dst []float32, src []tensor.BFloat16) { unpackAVX2(dst, src); unpackRest(dst, src) },
		}
	default:
		return generic(math32)
	}
}

// bfloat16 is the name that the generated declarations use.
type bfloat16 = tensor.BFloat16

// packRest and unpackRest convert the elements past whole vectors of 8, which the AVX2 code leaves out.
func packRest(dst []tensor.BFloat16, src []float32) { pack(dst[len(dst)&^7:], src[len(dst)&^7:]) }

func unpackRest(dst []float32, src []tensor.BFloat16) { unpack(dst[len(dst)&^7:], src[len(dst)&^7:]) }

// lanes holds the constants of the assembly's exponential, as wide as an AVX2 register; gen/exp.go names its rows.
var lanes = [...][8]float32{
	same(expLow), same(expHigh), same(log2e), same(ln2Hi), same(ln2Lo),
	same(expC6), same(expC5), same(expC4), same(expC3), same(expC2), same(1),
	same(float32(math.Copysign(0, -1))),     // the sign bit
	same(math.Float32frombits(uint32(127))), // the exponent's bias, an integer
}

func same(x float32) [8]float32 { return [8]float32{x, x, x, x, x, x, x, x} }

// firstLanes: 8 words from firstLanes[8−n] on are a mask of the first n lanes of an AVX2 register.
var firstLanes = [16]int32{-1, -1, -1, -1, -1, -1, -1, -1}
