//go:build amd64 || arm64

package vec

//lint:file-ignore U1000 The assembly reads these variables; see gen.

import "math"

// lanes holds constants of the assembly, each as wide as an AVX2 register; gen/constants.go names its rows.
var lanes = [...][8]float32{
	same(expLow), same(expHigh), same(log2e), same(roundMagic), same(ln2Hi), same(ln2Lo),
	same(expC6), same(expC5), same(expC4), same(expC3), same(expC2), same(1),
	bits(0x80000000),                                            // the sign
	bits(0x10000), bits(0x7fff), bits(0x8000), bits(0xffff0000), // rounding to bfloat16
	bits(0x400000), bits(127), bits(1),
	same(-1), same(tanhHigh), same(-tanhHigh),
	same(tanhP4), same(tanhP3), same(tanhP2), same(tanhP1), same(tanhP0), same(tanhQ4), same(tanhQ3),
	same(tanhQ2), same(tanhQ1), bits(0x7fffffff), bits(0x7f800000),
	same(-geluA), same(-geluB), same(geluA), same(3 * geluB), same(geluHigh), same(-geluHigh),
}

func bits(b uint32) [8]float32 { return same(math.Float32frombits(b)) }

func same(x float32) [8]float32 { return [8]float32{x, x, x, x, x, x, x, x} }

// philoxWords holds the multipliers and increments of Philox.
var philoxWords = [4][8]uint32{words(0xd2511f53), words(0xcd9e8d57), words(0x9e3779b9), words(0xbb67ae85)}

func words(w uint32) [8]uint32 { return [8]uint32{w, w, w, w, w, w, w, w} }
