package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

func neon() *asmgen.File {
	f := &asmgen.File{Package: "dedup", Generator: "gen/main.go", Arch: "arm64"}
	normaliseNEON(f)
	minHashNEON(f)
	fn := f.Func("prefetchLine", "asks for the cache line at p.", "p unsafe.Pointer")
	fn.Arg("p", "R0")
	fn.I("PRFM (R0), PLDL1KEEP")
	fn.Ret()
	return f
}

// normaliseNEON takes 64 bytes a turn: 71 instructions on vector pipes, 18 cycles on four of them.
func normaliseNEON(f *asmgen.File) {
	const text, lower, letters, digits, foreign, to, high = 0, 4, 8, 12, 16, 20, 28
	const constant, zero, bit = 29, 30, 31
	fn := f.Func("normaliseNEON", "does what normaliseGeneric does, for NEON.",
		"dst *byte, src *byte, blocks int, masks *uint64, high *uint64")
	for i, name := range []string{"dst", "src", "blocks", "masks"} {
		fn.Arg(name, fmt.Sprintf("R%d", i))
	}
	fn.VBit(bit, constant, "R4")
	fn.VBytes(zero, '0')
	fn.VClear(high)
	fn.Label("loop")
	fn.VLoadBlock(text, "R1")
	fn.VBytes(constant, ' ')
	for i := range 4 {
		fn.V("orr", lower+i, text+i, constant)
		fn.VCopy(to+i, constant)
	}
	fn.VWithinBytes(letters, lower, 'a', 'z', constant)
	fn.VWithinBytes(digits, text, '0', '9', constant)
	fn.VWithinBytes(foreign, text, 0x80, 0xff, constant)
	for i := range 4 {
		fn.V("bit", to+i, lower+i, letters+i)
		fn.V("bit", to+i, zero, digits+i)
		fn.V("bit", to+i, text+i, foreign+i)
		fn.V("orr", high, high, foreign+i)
	}
	fn.VStorePair(to, to+1, 0, "R0")
	fn.VStorePair(to+2, to+3, 32, "R0")
	fn.VFour("orr", letters, letters, digits)
	fn.VFour("orr", letters, letters, foreign)
	fn.VMask(letters, bit, text, 0, "R3")
	fn.I("ADD $64, R0")
	fn.I("ADD $64, R1")
	fn.I("ADD $8, R3")
	fn.I("SUBS $1, R2")
	fn.I("BNE loop")
	fn.V("umaxv", high, high)
	fn.Arg("high", "R0")
	fn.VStore(high, 8, 0, "R0")
	fn.Ret()
}

// minHashNEON keeps 56 minima and their factors in 28 registers, and computes the other 56 in a second pass. A value
// takes 56 instructions on vector pipes: 14 cycles on four pipes, and as many if only two of them multiply integers.
// It loads 28 registers: 9 cycles at three per cycle.
func minHashNEON(f *asmgen.File) {
	const half, minima, factors, x, sum = 14, 0, 14, 28, 30
	fn := f.Func("minHashNEON", "does what minHashGeneric does, for NEON.", params)
	for i, name := range []string{"min", "a", "b"} {
		fn.Arg(name, fmt.Sprintf("R%d", i))
	}
	for pass := range 2 {
		for i := 0; i < half; i += 2 {
			fn.VLoadPair(minima+i, minima+i+1, 16*(half*pass+i), "R0")
			fn.VLoadPair(factors+i, factors+i+1, 16*(half*pass+i), "R1")
		}
		fn.Arg("x", "R3")
		fn.Arg("n", "R4")
		loop := fn.NewLabel("loop")
		fn.Label(loop)
		fn.VLoad(x, 4, 0, "R3")
		for i := 0; i < half; i += 2 {
			fn.VLoadPair(sum, sum+1, 16*(half*pass+i), "R2")
			for j := range 2 {
				fn.VLane("mla", sum+j, factors+i+j, x, 0)
				fn.V("umin", minima+i+j, minima+i+j, sum+j)
			}
		}
		fn.I("ADD $4, R3")
		fn.I("SUBS $1, R4")
		fn.I("BNE %s", loop)
		for i := 0; i < half; i += 2 {
			fn.VStorePair(minima+i, minima+i+1, 16*(half*pass+i), "R0")
		}
	}
	fn.Ret()
}
