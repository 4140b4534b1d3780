package vec

import (
	"anneal/internal/isa"
	"anneal/tensor"
)

func float32Table(tier isa.Tier) Table[float32] {
	switch {
	case tier >= isa.AVX512:
		return Table[float32]{
			Add: addAVX512, Axpy: axpyAVX512, Scale: scaleAVX512, Mul: mulAVX512, Mix: mixAVX512, MulAdd: mulAddAVX512,
			Centre: centreAVX512, Dot: dotAVX512, Max: maximumAVX512, Sum: sumAVX512, SumSq: sumSqAVX512,
			ELU1:   elu1AVX512,
			ExpSum: expSumAVX512, Softcap: softcapAVX512, Rotate: rotateAVX512,
			RotatePairs: wholePairs(16, rotatePairsAVX512), SwiGLU: swiGLUAVX512, SwiGLUGrad: swiGLUGradAVX512,
			GeGLU: geGLUAVX512, GeGLUGrad: geGLUGradAVX512,
			GELU: geluAVX512, GELUGrad: geluGradAVX512,
			ReLUSquared: reluSquaredAVX512, ReLUSquaredGrad: reluSquaredGradAVX512,
			Updates: Updates[float32]{
				AdamW: adamWAVX512, Adam: adamAVX512, Momentum: momentumAVX512, Lion: lionAVX512,
				AdEMAMix: adEMAMixAVX512, Descend: descendAVX512, Whiten: whitenAVX512, Sophia: sophiaAVX512,
				MeanSquare: meanSquareAVX512,
				Decode:     wholeDecode(16, decodeAVX512), Encode: wholeEncode(16, encodeAVX512, encodeSignedAVX512),
				AdamW8: adamW8AVX512,
			},
			Pack: packAVX512, Unpack: unpackAVX512, PackF16: packF16AVX512, UnpackF16: unpackF16AVX512,
			MaxAbs: maxAbsAVX512, Quantize: quantizeAVX512,
			Mask: maskAVX512, Halves: halvesAVX512, PackStochastic: packStochasticAVX512,
			PackInt8: wholePackInt8(16, packInt8AVX512), UnpackInt8: wholeUnpackInt8(16, unpackInt8AVX512),
			Narrow: &Narrow[float32]{
				Multiple: 1, SwiGLU: narrowSwiGLUAVX512, SwiGLUGrad: narrowSwiGLUGradAVX512,
				GeGLU: narrowGeGLUAVX512, GeGLUGrad: narrowGeGLUGradAVX512,
				GELU: narrowGELUAVX512, GELUGrad: narrowGELUGradAVX512,
				ReLUSquared: narrowReLUSquaredAVX512, ReLUSquaredGrad: narrowReLUSquaredGradAVX512,
				Normalise: narrowNormaliseAVX512, Mul: narrowMulAVX512, NormDot: narrowNormDotAVX512,
				NormGrad: narrowNormGradAVX512, Rotate: narrowRotateAVX512, RotatePairs: narrowRotatePairsAVX512,
				NarrowLayerNorm: NarrowLayerNorm[float32]{
					LayerNorm: narrowLayerNormAVX512, LayerNormAgain: narrowLayerNormAgainAVX512,
					LayerNormDot: narrowLayerNormDotAVX512, LayerNormGrad: narrowLayerNormGradAVX512,
					Add: narrowAddAVX512,
				},
			},
		}
	case tier == isa.AVX2:
		return Table[float32]{
			Add: addAVX2, Axpy: axpyAVX2, Scale: scaleAVX2, Mul: mulAVX2, Mix: mixAVX2, MulAdd: mulAddAVX2,
			Centre: centreAVX2, Dot: dotAVX2, Max: maximumAVX2, Sum: sumAVX2, SumSq: sumSqAVX2,
			ELU1:   elu1AVX2,
			ExpSum: expSumAVX2, Softcap: softcapAVX2, Rotate: rotateAVX2, RotatePairs: wholePairs(8, rotatePairsAVX2),
			SwiGLU: swiGLUAVX2, SwiGLUGrad: swiGLUGradAVX2, GeGLU: geGLUAVX2, GeGLUGrad: geGLUGradAVX2,
			GELU: geluAVX2, GELUGrad: geluGradAVX2,
			ReLUSquared: reluSquaredAVX2, ReLUSquaredGrad: reluSquaredGradAVX2,
			Updates: Updates[float32]{
				AdamW: adamWAVX2, Adam: adamAVX2, Momentum: momentumAVX2, Lion: lionAVX2, AdEMAMix: adEMAMixAVX2,
				Descend: descendAVX2, Whiten: whitenAVX2, Sophia: sophiaAVX2, MeanSquare: meanSquareAVX2,
				Decode: wholeDecode(8, decodeAVX2), Encode: wholeEncode(8, encodeAVX2, encodeSignedAVX2),
			},
			Mask:     maskAVX2,
			Halves:   halvesAVX2,
			PackInt8: wholePackInt8(8, packInt8AVX2), UnpackInt8: wholeUnpackInt8(8, unpackInt8AVX2),
			PackStochastic: func(dst []tensor.BFloat16, src []float32, random []uint32) {
				packStochasticAVX2(dst, src, random)
				packStochastic(dst[len(dst)&^7:], src[len(dst)&^7:], random[len(dst)&^7:])
			},
			Pack:   func(dst []tensor.BFloat16, src []float32) { packAVX2(dst, src); packRest(dst, src) },
			Unpack: func(dst []float32, src []tensor.BFloat16) { unpackAVX2(dst, src); unpackRest(dst, src) },
			PackF16: func(dst []tensor.Float16, src []float32) {
				packF16AVX2(dst, src)
				packF16(dst[len(dst)&^7:], src[len(dst)&^7:])
			},
			UnpackF16: func(dst []float32, src []tensor.Float16) {
				unpackF16AVX2(dst, src)
				unpackF16(dst[len(dst)&^7:], src[len(dst)&^7:])
			},
			MaxAbs: maxAbsAVX2,
			Quantize: func(dst []tensor.BFloat16, src []float32, g *Grid[float32]) {
				quantizeAVX2(dst, src, g)
				quantize(dst[len(dst)&^7:], src[len(dst)&^7:], g)
			},
			Narrow: &Narrow[float32]{
				Multiple: 8, SwiGLU: narrowSwiGLUAVX2, SwiGLUGrad: narrowSwiGLUGradAVX2,
				GeGLU: narrowGeGLUAVX2, GeGLUGrad: narrowGeGLUGradAVX2,
				GELU: narrowGELUAVX2, GELUGrad: narrowGELUGradAVX2,
				ReLUSquared: narrowReLUSquaredAVX2, ReLUSquaredGrad: narrowReLUSquaredGradAVX2,
				Normalise: narrowNormaliseAVX2, Mul: narrowMulAVX2, NormDot: narrowNormDotAVX2,
				NormGrad: narrowNormGradAVX2, Rotate: narrowRotateAVX2, RotatePairs: narrowRotatePairsAVX2,
				NarrowLayerNorm: NarrowLayerNorm[float32]{
					LayerNorm: narrowLayerNormAVX2, LayerNormAgain: narrowLayerNormAgainAVX2,
					LayerNormDot: narrowLayerNormDotAVX2, LayerNormGrad: narrowLayerNormGradAVX2, Add: narrowAddAVX2,
				},
			},
		}
	default:
		return generic(math32)
	}
}

// packRest and unpackRest convert the elements past whole vectors of 8, which the AVX2 code skips.
func packRest(dst []tensor.BFloat16, src []float32) { pack(dst[len(dst)&^7:], src[len(dst)&^7:]) }

func unpackRest(dst []float32, src []tensor.BFloat16) { unpack(dst[len(dst)&^7:], src[len(dst)&^7:]) }
