package vec

//lint:file-ignore U1000 The assembly reads these variables; see gen.

// philoxBlocks holds the numbers of the even and odd blocks of a group of Philox, in 64-bit lanes.
var philoxBlocks = [2][8]uint64{{0, 2, 4, 6, 8, 10, 12, 14}, {1, 3, 5, 7, 9, 11, 13, 15}}

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
