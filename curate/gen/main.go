// Gen writes the assembly kernel of package curate for arm64.
package main

import (
	"log"

	"anneal/internal/asmgen"
)

func main() {
	f := &asmgen.File{Package: "curate", Generator: "gen/main.go", Arch: "arm64"}
	classify(f)
	if err := f.Write("kernels"); err != nil {
		log.Fatal(err)
	}
}

// Registers: blocks of 64 bytes, and two constants.
const (
	text, lower, second, third = 0, 4, 8, 12 // the text; in lower case, from its first, second and third byte on
	all, found, temp           = 16, 20, 24
	constant, bit              = 28, 31
)

// classify finds the classes of 64 bytes that the rules need: 466 instructions, of which 440 take vector pipes, 110
// cycles on four of them.
func classify(f *asmgen.File) {
	fn := f.Func("classifyNEON", "does what classifyGeneric does, for NEON. It knows the order of the fields.",
		"blocks *block, text *byte, n int")
	fn.Arg("blocks", "R0")
	fn.Arg("text", "R1")
	fn.Arg("n", "R2")
	fn.VBit(bit, temp, "R3")
	store := func(found, field int) { fn.VMask(found, bit, temp, 8*field, "R0") }
	also := func(c byte) { // in all
		fn.VEqualByte(found, text, c, constant)
		fn.VFour("orr", all, all, found)
	}
	fn.Label("loop")
	for i, block := range []int{lower, second, third} {
		fn.I("ADD $%d, R1, R3", i)
		fn.VLoadBlock(block, "R3")
	}
	for i := range 4 {
		fn.VCopy(text+i, lower+i)
	}
	fn.VBytes(constant, 0x20)
	for i := range 12 {
		fn.V("orr", lower+i, lower+i, constant)
	}
	fn.VEqualByte(all, lower, '{', constant) // also finds [
	for _, t := range []string{"vac", "psu", "kie", "rms", "jav"} {
		fn.VEqualByte(found, lower, t[0], constant)
		fn.VEqualByte(temp, second, t[1], constant)
		fn.VFour("and", found, found, temp)
		fn.VEqualByte(temp, third, t[2], constant)
		fn.VFour("and", found, found, temp)
		fn.VFour("orr", all, all, found)
	}
	store(all, 11)

	fn.VWithinBytes(all, lower, 'a', 'z', constant)
	store(all, 0)
	fn.VWithinBytes(found, text, '0', '9', constant)
	store(found, 1)
	fn.VFour("orr", all, all, found)
	also('_')
	store(all, 2)

	const newline = second // free from here on
	fn.VEqualByte(newline, text, '\n', constant)
	store(newline, 3)
	fn.VWithinBytes(all, text, '\t', '\r', constant)
	also(' ')
	fn.VWithinBytes(found, text, 0x1c, 0x1f, constant)
	fn.VFour("orr", all, all, found)
	store(all, 4)
	fn.VWithinBytes(found, text, 0x80, 0xff, constant)
	store(found, 5)

	fn.VWithinBytes(all, text, 0, 0x1f, constant)
	fn.VFour("bic", all, all, newline)
	fn.VEqualByte(found, text, '\t', constant)
	fn.VFour("bic", all, all, found)
	also(0x7f)
	store(all, 6)

	fn.VEqualByte(all, text, '-', constant)
	also('\'')
	store(all, 7)
	for i, set := range []string{`"')]`, ".?!", "#"} {
		fn.VEqualByte(all, text, set[0], constant)
		for _, c := range set[1:] {
			also(byte(c))
		}
		store(all, 8+i)
	}
	fn.I("MOVD ZR, 96(R0)") // continued
	fn.I("ADD $64, R1")
	fn.I("ADD $104, R0")
	fn.I("SUBS $1, R2")
	fn.I("BNE loop")
	fn.Ret()
}
