package main

import (
	"fmt"
	"math/bits"

	"anneal/internal/asmgen"
)

// Offsets in vec.Code[float32].
const (
	codeValues  = 0
	codeMids    = 1024
	codeSlopes  = 2048
	codeOffsets = 2076
	codeNear    = 2104
	decades     = 7
)

// lookup reads the 32-bit numbers at base + offset + 4·index, for indices below entries (128 or 256). A gather
// instruction would take as long for encode and twice as long for decode, and much longer on CPUs whose microcode
// mitigates gather.
func (k *kernel) lookup(base string, offset, entries, index, dst int) {
	if k.wide() {
		k.selects(base, offset, entries, index, dst)
		return
	}
	const upper, numbers = 13, 14
	k.I("VEXTRACTI128 $1, Y%d, X%d", index, upper)
	for _, half := range [][2]int{{index, dst}, {upper, numbers}} {
		for pair := range 2 {
			k.I("VPEXTRQ $%d, X%d, R10", pair, half[0])
			k.I("MOVL R10, R12")
			k.I("SHRQ $32, R10")
			if pair == 0 {
				k.I("VMOVSS %d(%s)(R12*4), X%d", offset, base, half[1])
			} else {
				k.I("VINSERTPS $0x20, %d(%s)(R12*4), X%d, X%d", offset, base, half[1], half[1])
			}
			k.I("VINSERTPS $%#x, %d(%s)(R10*4), X%d, X%d", 0x10+0x20*pair, offset, base, half[1], half[1])
		}
	}
	k.I("VINSERTF128 $1, X%d, Y%d, Y%d", numbers, dst, dst)
}

// selects is lookup for AVX-512. An instruction selects among the 32 numbers of two registers by the lower five bits
// of an index; a bit of each level, in a mask from K5 on, decides between the results of the level below. Of 256
// numbers that are 8 selections and 7 decisions, by two units. It uses the registers from 17 on.
func (k *kernel) selects(base string, offset, entries, index, dst int) {
	const first, numbers, size = 17, 21, 4 * 32 // registers of results, of a table's first half; bytes of a table
	levels := bits.Len(uint(entries/32)) - 1
	for l := range levels {
		k.I("VPSLLD $%d, Z%d, Z%d", 26-l, index, numbers)
		k.I("VPMOVD2M Z%d, K%d", numbers, 5+l)
	}
	var level func(l, table, to int)
	level = func(l, table, to int) {
		if l == 0 {
			k.I("VMOVUPS %d(%s), Z%d", offset+size*table, base, numbers)
			k.I("VMOVDQA64 Z%d, Z%d", index, to)
			k.I("VPERMI2PS %d(%s), Z%d, Z%d", offset+size*table+size/2, base, numbers, to)
			return
		}
		other := first + l - 1
		level(l-1, table, to)
		level(l-1, table+1<<(l-1), other)
		k.I("VMOVAPS Z%d, K%d, Z%d", other, 4+l, to)
	}
	level(levels, 0, dst)
}

// integer sets register r to a 32-bit number.
func (k *kernel) integer(value uint32, r int) {
	if k.neon() {
		k.I("MOVW $%d, R14", int32(value))
		k.VSplatOf(r, "R14")
		return
	}
	k.I("MOVL $%#x, R10", value)
	k.I("VMOVD R10, X%d", r)
	k.I("VPBROADCASTD X%d, %s", r, k.reg(r))
}

// decode sets x to the numbers of the codes at an address times register scale.
func (k *kernel) decode(codes, base string, scale, index, x int) {
	k.I("VPMOVZXBD %s, %s", codes, k.reg(index))
	k.lookup(base, codeValues, 256, index, x)
	k.op("VMULPS", scale, x, x)
}

// codes writes the primitives of vec.Code, for whole vectors, or groups of 16 elements, only.
func (s *isa) codes(f *asmgen.File) {
	limit := " Elements past whole vectors are skipped."
	if s.neon() {
		limit = " Elements past whole groups of 16 are skipped."
	}
	s.decoding(f, "decode", "is dst = scale·values[codes]."+limit)
	s.encoding(f, "encode", "finds the unsigned codes nearest to scale·src."+limit, false)
	s.encoding(f, "encodeSigned", "finds the signed codes nearest to scale·src."+limit, true)
}

func (s *isa) decoding(f *asmgen.File, name, doc string) {
	if s.neon() {
		s.neonDecoding(f, name, doc)
		return
	}
	k := s.kernel(f, name, doc, []string{"dst", "codes:u8"}, "c *Code[float32], scale float32", "")
	k.whole = true
	k.Arg("c", "R11")
	k.broadcast("scale", 8)
	k.loop(2, func(u int) {
		index, x := 2*u, 2*u+1
		k.decode(fmt.Sprintf("%d(%s)(AX*1)", k.lanes*u, k.base["codes"]), "R11", 8, index, x)
		k.store(x, "dst", u)
	})
	k.Ret()
}

// Registers of code. AVX-512 keeps the lines in firstLine and the registers after it, AVX2 in memory.
const (
	encoded, encodedIndex, encodedMid, encodedTemp = 0, 1, 2, 3

	encodeScale, encodeOne, encodeLast, encodeZero = 4, 5, 6, 15
	firstLine, lineSlope, encodeLeast              = 9, 13, 16
)

// zeroOf returns the code of 0.
func zeroOf(signed bool) int { return map[bool]int{true: 127}[signed] }

// constantsOfCode loads the constants for the code at base. The limit keeps NaN within the table.
func (k *kernel) constantsOfCode(base string, signed bool) {
	k.integer(1, encodeOne)
	k.integer(uint32(254-zeroOf(signed)), encodeLast)
	if !k.wide() {
		return
	}
	k.integer(127, encodeZero)
	k.integer((127-24)<<23, encodeLeast)
	for i := range 4 {
		k.I("VMOVUPS %d(%s), Z%d", codeNear+64*i, base, firstLine+i)
	}
}

// lines sets dst to the minimum of a code's lines at x. AVX-512 raises x to at least 2⁻²⁴, which is still in the code
// 0.
func (k *kernel) lines(base string, x, dst, temp, temp2 int) {
	if k.wide() {
		k.op("VMAXPS", encodeLeast, x, temp)
		k.I("VPSRLD $24, Z%d, Z%d", temp, temp2)
		for line, to := range []int{dst, temp2} {
			k.op("VPERMPS", firstLine+line, temp2, lineSlope+line)
			k.op("VPERMPS", firstLine+2+line, temp2, to)
			k.op("VFMADD231PS", lineSlope+line, temp, to)
		}
		k.op("VMINPS", temp2, dst, dst)
		return
	}
	for d := range decades {
		to := temp
		if d == 0 {
			to = dst
		}
		k.I("VBROADCASTSS %d(%s), Y%d", codeOffsets+4*d, base, to)
		k.I("VBROADCASTSS %d(%s), Y%d", codeSlopes+4*d, base, temp2)
		k.op("VFMADD231PS", temp2, x, to)
		if d > 0 {
			k.op("VMINPS", temp, dst, dst)
		}
	}
}

// code writes to dst the codes of the numbers nearest to register encoded times encodeScale.
func (k *kernel) code(base, dst string, signed bool) {
	const x, index, mid, temp, above = encoded, encodedIndex, encodedMid, encodedTemp, 0x1e // GT, false for NaN
	const zero, sign = 7, 8                                                                 // AVX2
	k.op("VMULPS", encodeScale, x, x)
	if signed {
		if k.wide() {
			k.I("VPMOVD2M Z%d, K4", x)
		} else {
			k.I("VMOVAPS Y%d, Y%d", x, sign)
		}
		k.withFar("VANDPS", magnitudeBits, x, x)
	}
	k.lines(base, x, index, temp, mid)
	k.I("VCVTTPS2DQ %s, %s", k.reg(index), k.reg(index))
	k.op("VPMINUD", encodeLast, index, index)
	entries := 256
	if signed {
		entries = 128
	}
	k.lookup(base, codeMids+4*zeroOf(signed), entries, index, mid)
	if k.wide() {
		k.I("VCMPPS $%d, Z%d, Z%d, K3", above, mid, x)
		k.I("VPADDD Z%d, Z%d, K3, Z%d", encodeOne, index, index)
	} else {
		k.I("VCMPPS $%d, Y%d, Y%d, Y%d", above, mid, x, mid)
		k.op("VPSUBD", mid, index, index) // all ones is −1
	}
	switch {
	case signed && k.wide():
		k.I("VPMINUD Z%d, Z%d, K4, Z%d", encodeZero, index, index)
		k.op("VPADDD", encodeZero, index, mid)
		k.I("VPSUBD Z%d, Z%d, K4, Z%d", index, encodeZero, mid)
	case signed:
		k.integer(127, zero)
		k.op("VPADDD", zero, index, mid)
		k.op("VPMINUD", zero, index, index)
		k.op("VPSUBD", index, zero, index)
		k.op("VBLENDVPS", sign, index, mid, mid)
	default:
		k.op("VMOVAPS", index, mid)
	}
	if k.wide() {
		k.I("VPMOVDB Z%d, %s", mid, dst)
		return
	}
	k.I("VEXTRACTI128 $1, Y%d, X%d", mid, temp)
	k.I("VPACKUSDW X%d, X%d, X%d", temp, mid, mid)
	k.I("VPACKUSWB X%d, X%d, X%d", mid, mid, mid)
	k.I("VMOVQ X%d, %s", mid, dst)
}

func (s *isa) encoding(f *asmgen.File, name, doc string, signed bool) {
	if s.neon() {
		s.neonEncoding(f, name, doc, signed)
		return
	}
	k := s.kernel(f, name, doc, []string{"codes:u8", "src"}, "c *Code[float32], scale float32", "")
	k.whole = true
	k.Arg("c", "R11")
	k.broadcast("scale", encodeScale)
	k.constantsOfCode("R11", signed)
	k.loop(1, func(u int) {
		k.load("src", u, encoded)
		k.code("R11", fmt.Sprintf("(%s)(AX*1)", k.base["codes"]), signed)
	})
	k.Ret()
}
