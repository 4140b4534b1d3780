package vec

import "anneal/tensor"

// NarrowLayerNorm holds the primitives of LayerNorm and of biases on rows of bfloat16. See Narrow.
type NarrowLayerNorm[T Float] struct {
	// LayerNorm is xhat = r·(x − mean), y = xhat·gain + bias; y is computed from the rounded xhat. LayerNormAgain
	// computes only y.
	LayerNorm      func(y, xhat []tensor.BFloat16, x, gain, bias []T, mean, r T)
	LayerNormAgain func(y, xhat []tensor.BFloat16, gain, bias []T)
	// LayerNormDot is dgain += dy·xhat, dbias += dy; sums receives Σ gain·dy and Σ gain·dy·xhat. LayerNormGrad is
	// dx += r·(gain·dy − dot·xhat − mean).
	LayerNormDot  func(dgain, dbias []T, dy, xhat []tensor.BFloat16, gain []T, sums *[2]T)
	LayerNormGrad func(dx []T, dy, xhat []tensor.BFloat16, gain []T, r, mean, dot T)
	// Add is dst += x.
	Add func(dst []T, x []tensor.BFloat16)
}

func centre[T Float](dst, x []T, mean, a T) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = a * (x[i] - mean)
	}
}
