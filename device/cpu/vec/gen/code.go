package main

import (
	"math/bits"

	"anneal/internal/asmgen"
)

// Offsets in vec.Code[float32].
const (
	codeValues  = 0
	codeMids    = 1024
	codeSlopes  = 2048
	codeOffsets = 2084
	codeNear    = 2120
	codeDecades = 2376
)

// lookup reads for AVX2 the 32-bit numbers at base + offset + 4·index, for the eight bytes in memory from at in the
// slice of codes. upper is overwritten. To take indices out of a vector register would take twice the instructions. A
// gather instruction would take longer, and much longer on CPUs whose microcode mitigates gather.
func (k *kernel) lookup(base string, offset int, codes string, at, dst, upper int) {
	for i := range 8 {
		k.I("MOVBLZX %d(%s)(AX*1), R10", at+i, codes)
		half := []int{dst, upper}[i/4]
		if i%4 == 0 {
			k.I("VMOVSS %d(%s)(R10*4), X%d", offset, base, half)
		} else {
			k.I("VINSERTPS $%#x, %d(%s)(R10*4), X%d, X%d", 0x10*(i%4), offset, base, half, half)
		}
	}
	k.I("VINSERTF128 $1, X%d, Y%d, Y%d", upper, dst, dst)
}

// selects reads for AVX-512 the 32-bit numbers at base + offset + 4·index, for indices below entries (128 or 256). An
// instruction selects among the 32 numbers of two registers by the lower five bits of an index; a bit of each level, in
// a mask from K5 on, decides between the results of the level below. Of 256 numbers that are 8 selections and 7
// decisions, by two units. It uses the registers from 17 on.
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

// decode sets x to the numbers of the codes from at in a slice, times register scale. temp is overwritten.
func (k *kernel) decode(codes string, at int, base string, scale, temp, x int) {
	if k.wide() {
		k.I("VPMOVZXBD %d(%s)(AX*1), Z%d", at, k.base[codes], temp)
		k.selects(base, codeValues, 256, temp, x)
	} else {
		k.lookup(base, codeValues, k.base[codes], at, x, temp)
	}
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
		temp, x := 2*u, 2*u+1
		k.decode("codes", k.lanes*u, "R11", 8, temp, x)
		k.store(x, "dst", u)
	})
	k.Ret()
}

// Registers of code. AVX-512 has encodeOne, AVX2 encodeSigns and encodeDecades.
const (
	encoded, encodedIndex, encodedMid, encodedTemp = 0, 1, 2, 3

	encodeScale, encodeLeast, encodeLast, encodeZero = 4, 5, 6, 7
	encodeSigns, firstLine, lineSlope, encodeDecades = 8, 9, 13, 15
	encodeOne                                        = 16
)

// zeroOf returns the code of 0.
func zeroOf(signed bool) int { return map[bool]int{true: 127}[signed] }

// constantsOfCode loads the constants for the code at base. The limit keeps NaN within the table.
func (k *kernel) constantsOfCode(base string, signed bool) {
	k.integer(uint32(254-zeroOf(signed)), encodeLast)
	k.integer((127-24)<<23, encodeLeast)
	if k.wide() {
		k.integer(1, encodeOne)
		k.integer(127, encodeZero)
		for i := range 4 {
			k.I("VMOVUPS %d(%s), Z%d", codeNear+64*i, base, firstLine+i)
		}
		return
	}
	k.integer(0x7f7f7f7f, encodeZero) // bytes
	k.I("VBROADCASTI128 %d(%s), Y%d", codeDecades, base, encodeDecades)
	for i := range 2 { // of a decade, and of the next
		k.I("VMOVUPS %d(%s), Y%d", codeSlopes+4*i, base, firstLine+i)
		k.I("VMOVUPS %d(%s), Y%d", codeOffsets+4*i, base, firstLine+2+i)
	}
}

// lines sets dst to the minimum of a code's lines at x, of the two that can be it. It raises x to at least 2⁻²⁴, which
// is still in the code 0.
func (k *kernel) lines(x, dst, temp, temp2 int) {
	k.op("VMAXPS", encodeLeast, x, temp)
	k.I("VPSRLD $24, %s, %s", k.reg(temp), k.reg(temp2))
	if !k.wide() { // a register has the lines of 7 decades, but not those of 16 pairs of exponents
		k.op("VPSHUFB", temp2, encodeDecades, temp2)
	}
	for line, to := range []int{dst, temp2} {
		k.op("VPERMPS", firstLine+line, temp2, lineSlope+line)
		k.op("VPERMPS", firstLine+2+line, temp2, to)
		k.op("VFMADD231PS", lineSlope+line, temp, to)
	}
	k.op("VMINPS", temp2, dst, dst)
}

const above = 0x1e // GT, false for NaN

// candidate sets encodedIndex to the codes nearest to register encoded times encodeScale, or codes that are one too
// low. Signs are left in K4 or encodeSigns.
func (k *kernel) candidate(signed bool) {
	const x, index, temp, temp2 = encoded, encodedIndex, encodedTemp, encodedMid
	k.scaled(signed)
	k.lines(x, index, temp, temp2)
	k.I("VCVTTPS2DQ %s, %s", k.reg(index), k.reg(index))
	k.op("VPMINUD", encodeLast, index, index)
}

// scaled multiplies encoded by encodeScale and splits it into magnitude and sign.
func (k *kernel) scaled(signed bool) {
	k.op("VMULPS", encodeScale, encoded, encoded)
	if !signed {
		return
	}
	if k.wide() {
		k.I("VPMOVD2M Z%d, K4", encoded)
	} else {
		k.op("VMOVAPS", encoded, encodeSigns)
	}
	k.withFar("VANDPS", magnitudeBits, encoded, encoded)
}

// code writes for AVX-512 the codes of the numbers nearest to register encoded times encodeScale to the slice of codes.
func (k *kernel) code(base, codes string, signed bool) {
	const x, index, mid = encoded, encodedIndex, encodedMid
	k.candidate(signed)
	entries := 256
	if signed {
		entries = 128
	}
	k.selects(base, codeMids+4*zeroOf(signed), entries, index, mid)
	k.I("VCMPPS $%d, Z%d, Z%d, K3", above, mid, x)
	k.I("VPADDD Z%d, Z%d, K3, Z%d", encodeOne, index, index)
	if signed {
		k.I("VPMINUD Z%d, Z%d, K4, Z%d", encodeZero, index, index)
		k.op("VPADDD", encodeZero, index, mid)
		k.I("VPSUBD Z%d, Z%d, K4, Z%d", index, encodeZero, mid)
	} else {
		k.op("VMOVAPS", index, mid)
	}
	k.I("VPMOVDB Z%d, (%s)(AX*1)", mid, k.base[codes])
}

// candidates and resolve write the same codes for AVX2, vector u of a slice, in two loops: candidates writes them as
// bytes that may be one too low, resolve looks these up. One loop takes a third longer: the scheduler of a Zen 3
// holds too few of its iterations to fill the time from the numbers to the codes.
func (k *kernel) candidates(src, codes string, u int, signed bool) {
	k.load(src, u, encoded)
	k.candidate(signed)
	k.bytes("VPACKUS", encodedIndex, encodedTemp)
	k.I("VMOVQ X%d, %s", encodedIndex, k.at(codes, u))
}

func (k *kernel) resolve(base, src, codes string, u int, signed bool) {
	const x, index, mid, temp = encoded, encodedIndex, encodedMid, encodedTemp
	k.load(src, u, x)
	k.scaled(signed)
	k.lookup(base, codeMids+4*zeroOf(signed), k.base[codes], 8*u, mid, temp)
	k.I("VCMPPS $%d, Y%d, Y%d, Y%d", above, mid, x, mid)
	k.bytes("VPACKSS", mid, temp)
	k.I("VMOVQ %s, X%d", k.at(codes, u), index)
	k.I("VPSUBB X%d, X%d, X%d", mid, index, index) // all ones is −1
	if signed {
		k.bytes("VPACKSS", encodeSigns, temp)
		k.I("VPMINUB X%d, X%d, X%d", encodeZero, index, mid)
		k.I("VPSUBB X%d, X%d, X%d", mid, encodeZero, mid)
		k.I("VPADDB X%d, X%d, X%d", encodeZero, index, index)
		k.I("VPBLENDVB X%d, X%d, X%d, X%d", encodeSigns, mid, index, index)
	}
	k.I("VMOVQ X%d, %s", index, k.at(codes, u))
}

// bytes packs the eight 32-bit numbers of r, with saturation, into the first bytes of r.
func (k *kernel) bytes(pack string, r, temp int) {
	k.I("VEXTRACTI128 $1, Y%d, X%d", r, temp)
	k.I("%[1]sDW X%[3]d, X%[2]d, X%[2]d", pack, r, temp)
	k.I("%[1]sWB X%[2]d, X%[2]d, X%[2]d", pack, r)
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
	if k.wide() {
		k.loop(1, func(u int) {
			k.load("src", u, encoded)
			k.code("R11", "codes", signed)
		})
	} else {
		k.loop(1, func(u int) { k.candidates("src", "codes", u, signed) })
		k.restart("codes")
		k.loop(1, func(u int) { k.resolve("R11", "src", "codes", u, signed) })
	}
	k.Ret()
}
