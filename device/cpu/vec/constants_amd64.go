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

// philoxWords and philoxBlocks hold the multipliers and increments of Philox, and the numbers of the even and odd
// blocks of a group, in 64-bit lanes.
var (
	philoxWords  = [4][8]uint32{words(0xd2511f53), words(0xcd9e8d57), words(0x9e3779b9), words(0xbb67ae85)}
	philoxBlocks = [2][8]uint64{{0, 2, 4, 6, 8, 10, 12, 14}, {1, 3, 5, 7, 9, 11, 13, 15}}
)

func words(w uint32) [8]uint32 { return [8]uint32{w, w, w, w, w, w, w, w} }

// Values of MXCSR: all exceptions masked, round to nearest; with and without flush-to-zero and denormals-are-zero.
var flushSubnormals, keepSubnormals uint32 = 0x9fc0, 0x1f80

// firstLanes yields AVX2 masks: the 8 words from firstLanes[8−n] on select the first n lanes.
var firstLanes = [16]int32{-1, -1, -1, -1, -1, -1, -1, -1}

// spreadWords moves 16 words into the upper halves of 32-bit lanes.
var spreadWords = [32]uint16{
	1: 0, 3: 1, 5: 2, 7: 3, 9: 4, 11: 5, 13: 6, 15: 7,
	17: 8, 19: 9, 21: 10, 23: 11, 25: 12, 27: 13, 29: 14, 31: 15,
}

// oddWords selects the upper halves of 16 words of 32 bits.
var oddWords = [16]uint16{1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31}
