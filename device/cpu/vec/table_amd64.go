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
			Narrow: &Narrow[float32]{
				Multiple: 1, SwiGLU: narrowSwiGLUAVX512, SwiGLUGrad: narrowSwiGLUGradAVX512,
				Normalise: narrowNormaliseAVX512, Mul: narrowMulAVX512, NormDot: narrowNormDotAVX512, NormGrad: narrowNormGradAVX512,
				Rotate: narrowRotateAVX512,
			},
		}
	case tier == isa.AVX2:
		return Table[float32]{
			Add: addAVX2, Axpy: axpyAVX2, Scale: scaleAVX2, Mul: mulAVX2, MulAdd: mulAddAVX2,
			Dot: dotAVX2, Max: maximumAVX2, Sum: sumAVX2, SumSq: sumSqAVX2,
			ExpSum: expSumAVX2, Rotate: rotateAVX2, SwiGLU: swiGLUAVX2, SwiGLUGrad: swiGLUGradAVX2, AdamW: adamWAVX2,
			Pack:   func(dst []tensor.BFloat16, src []float32) { packAVX2(dst, src); packRest(dst, src) },
			Unpack: func(dst []float32, src []tensor.BFloat16) { unpackAVX2(dst, src); unpackRest(dst, src) },
			Narrow: &Narrow[float32]{
				Multiple: 8, SwiGLU: narrowSwiGLUAVX2, SwiGLUGrad: narrowSwiGLUGradAVX2,
				Normalise: narrowNormaliseAVX2, Mul: narrowMulAVX2, NormDot: narrowNormDotAVX2, NormGrad: narrowNormGradAVX2,
				Rotate: narrowRotateAVX2,
			},
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

// lanes holds constants of the assembly, as wide as an AVX2 register; gen/constants.go names its rows.
var lanes = [...][8]float32{
	same(expLow), same(expHigh), same(log2e), same(roundMagic), same(ln2Hi), same(ln2Lo),
	same(expC6), same(expC5), same(expC4), same(expC3), same(expC2), same(1),
	bits(0x80000000),                                            // the sign
	bits(0x10000), bits(0x7fff), bits(0x8000), bits(0xffff0000), // rounding to bfloat16
	bits(0x400000), bits(127), bits(1),
}

func bits(b uint32) [8]float32 { return same(math.Float32frombits(b)) }

func same(x float32) [8]float32 { return [8]float32{x, x, x, x, x, x, x, x} }

// firstLanes: 8 words from firstLanes[8−n] on are a mask of the first n lanes of an AVX2 register.
var firstLanes = [16]int32{-1, -1, -1, -1, -1, -1, -1, -1}

// spreadWords puts 16 words into the upper halves of 32-bit lanes.
var spreadWords = [32]uint16{
	1: 0, 3: 1, 5: 2, 7: 3, 9: 4, 11: 5, 13: 6, 15: 7,
	17: 8, 19: 9, 21: 10, 23: 11, 25: 12, 27: 13, 29: 14, 31: 15,
}

// oddWords selects the upper halves of 16 words of 32 bits.
var oddWords = [16]uint16{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31}
