package main

import "anneal/internal/asmgen"

// A neonLoader loads four elements of an operand as FP32, the format of products in the tier neon.
type neonLoader struct {
	name   string
	size   int // bytes of an element in memory
	consts func(fn *asmgen.Func)
	widen  func(fn *asmgen.Func, x, temp int) // register x, in place; temp and the next register are scratch
}

// bytes returns the size of four elements.
func (l neonLoader) bytes() int { return 4 * l.size }

func nothing(*asmgen.Func) {}

var neonF32 = neonLoader{"F32", 4, nothing, func(*asmgen.Func, int, int) {}}

var neonBF16 = neonLoader{"BF16", 2, nothing, func(fn *asmgen.Func, x, _ int) { fn.VShift("shll", x, x, 16) }}

var neonF16 = neonLoader{"F16", 2, nothing, func(fn *asmgen.Func, x, _ int) { fn.V("fcvtl.4s", x, x) }}

// Registers of the constants for rounding.
const (
	neonBelow = 29 // 0x7fff: just below half of the last place
	neonQuiet = 30 // the bit that makes a NaN quiet
	neonUpper = 31 // the bits that BF16 keeps
)

// neonRounded rounds to BF16, ties to even, and keeps the result in FP32; a NaN, which is not equal to itself, keeps
// its upper half and becomes quiet. Seven instructions for four elements.
var neonRounded = neonLoader{"F32Rounded", 4,
	func(fn *asmgen.Func) {
		for _, c := range []struct {
			register int
			bits     uint32
		}{{neonBelow, 0x7fff}, {neonQuiet, 0x400000}, {neonUpper, 0xffff0000}} {
			fn.I("MOVD $%#x, R26", c.bits)
			fn.VSplatOf(c.register, "R26")
		}
	},
	func(fn *asmgen.Func, x, temp int) {
		sum, number := temp, temp+1
		fn.VShift("shl", number, x, 15)
		fn.V("add", sum, x, neonBelow)
		fn.VShift("usra", sum, number, 31) // and one if the last place is odd
		fn.V("fcmeq", number, x, x)
		fn.V("orr", x, x, neonQuiet)
		fn.V("bit", x, sum, number)
		fn.V("and", x, x, neonUpper)
	},
}

// neonTranspose transposes the 4×4 words of registers x, x+step, x+2·step and x+3·step in place. Four registers from
// temp on are scratch.
func neonTranspose(fn *asmgen.Func, x, step, temp int) {
	for i, name := range []string{"zip1", "zip2"} {
		fn.V(name, temp+2*i, x, x+2*step)
		fn.V(name, temp+2*i+1, x+step, x+3*step)
	}
	for i, name := range []string{"zip1", "zip2"} {
		fn.V(name, x+i*step, temp, temp+1)
		fn.V(name, x+(2+i)*step, temp+2, temp+3)
	}
}

// A quadLoader loads operands as BF16, for BFMMLA.
type quadLoader struct {
	name string
	size int // bytes of an element in memory

	// pair loads 16 bytes of each of two rows to 4/size registers, four elements of both rows in each.
	pair func(fn *asmgen.Func, to, temp, offset int, first, second string)
	// eight loads eight elements.
	eight func(fn *asmgen.Func, to, temp, offset int, base string)
}

var quadBF16 = quadLoader{"BF16Quad", 2,
	func(fn *asmgen.Func, to, temp, offset int, first, second string) {
		fn.VLoad(temp, 16, offset, first)
		fn.VLoad(to+1, 16, offset, second)
		fn.V("zip1.2d", to, temp, to+1)
		fn.V("zip2.2d", to+1, temp, to+1)
	},
	func(fn *asmgen.Func, to, _, offset int, base string) { fn.VLoad(to, 16, offset, base) },
}

var quadF32 = quadLoader{"F32Quad", 4,
	func(fn *asmgen.Func, to, temp, offset int, first, second string) {
		fn.VLoad(to, 16, offset, first)
		fn.VLoad(temp, 16, offset, second)
		fn.V("bfcvtn", to, to)
		fn.V("bfcvtn2", to, temp)
	},
	func(fn *asmgen.Func, to, temp, offset int, base string) {
		fn.VLoadPair(to, temp, offset, base)
		fn.V("bfcvtn", to, to)
		fn.V("bfcvtn2", to, temp)
	},
}
