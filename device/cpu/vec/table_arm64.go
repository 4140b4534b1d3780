package vec

import "anneal/internal/isa"

func float32Table(tier isa.Tier) Table[float32] {
	if tier < isa.NEON {
		return generic(math32)
	}
	return Table[float32]{
		Add: addNEON, Axpy: axpyNEON, Scale: scaleNEON, Mul: mulNEON, Mix: mixNEON, MulAdd: mulAddNEON,
		Centre: centreNEON, Dot: dotNEON, Max: maximumNEON, Sum: sumNEON, SumSq: sumSqNEON,
		ELU1: elu1NEON, ExpSum: expSumNEON, Softcap: softcapNEON,
		Rotate: rotateNEON, RotatePairs: wholePairs(8, rotatePairsNEON),
		SwiGLU: swiGLUNEON, SwiGLUGrad: swiGLUGradNEON, GeGLU: geGLUNEON, GeGLUGrad: geGLUGradNEON,
		GELU: geluNEON, GELUGrad: geluGradNEON, ReLUSquared: reluSquaredNEON, ReLUSquaredGrad: reluSquaredGradNEON,
		Updates: Updates[float32]{
			AdamW: adamWNEON, Adam: adamNEON, Momentum: momentumNEON, Lion: lionNEON, AdEMAMix: adEMAMixNEON,
			Descend: descendNEON, Whiten: whitenNEON, Sophia: sophiaNEON, MeanSquare: meanSquareNEON,
			Decode: wholeDecode(16, decodeNEON), Encode: wholeEncode(16, encodeNEON, encodeSignedNEON),
			AdamW8: adamW8NEON,
		},
		Mask: maskNEON, Halves: halvesNEON, PackStochastic: packStochasticNEON,
		PackInt8: wholePackInt8(4, packInt8NEON), UnpackInt8: wholeUnpackInt8(4, unpackInt8NEON),
		Pack: packNEON, Unpack: unpackNEON, PackF16: packF16NEON, UnpackF16: unpackF16NEON,
		MaxAbs: maxAbsNEON, Quantize: quantizeNEON,
		Narrow: &Narrow[float32]{
			Multiple: 1, SwiGLU: narrowSwiGLUNEON, SwiGLUGrad: narrowSwiGLUGradNEON,
			GeGLU: narrowGeGLUNEON, GeGLUGrad: narrowGeGLUGradNEON, GELU: narrowGELUNEON, GELUGrad: narrowGELUGradNEON,
			ReLUSquared: narrowReLUSquaredNEON, ReLUSquaredGrad: narrowReLUSquaredGradNEON,
			Normalise: narrowNormaliseNEON, Mul: narrowMulNEON, NormDot: narrowNormDotNEON,
			NormGrad: narrowNormGradNEON, Rotate: narrowRotateNEON, RotatePairs: narrowRotatePairsNEON,
			NarrowLayerNorm: NarrowLayerNorm[float32]{
				LayerNorm: narrowLayerNormNEON, LayerNormAgain: narrowLayerNormAgainNEON,
				LayerNormDot: narrowLayerNormDotNEON, LayerNormGrad: narrowLayerNormGradNEON, Add: narrowAddNEON,
			},
		},
	}
}
