package asmgen

import "fmt"

// The Go assembler lacks the AVX512_BF16 instructions, so they are written as bytes. Registers are ZMM numbers 0–31.

// VDPBF16PS adds to the FP32 lanes of dst the dot products of bfloat16 pairs of a and b (EVEX.512.F3.0F38.W0 52 /r).
func (fn *Func) VDPBF16PS(b, a, dst int) {
	fn.bytes(evex(dst, a, b, 2, 0x52), "VDPBF16PS Z%d, Z%d, Z%d", b, a, dst)
}

// VCVTNE2PS2BF16 rounds 32 floats, lo in the lower half and hi in the upper, to bfloat16 (EVEX.512.F2.0F38.W0 72 /r).
func (fn *Func) VCVTNE2PS2BF16(lo, hi, dst int) {
	fn.bytes(evex(dst, hi, lo, 3, 0x72), "VCVTNE2PS2BF16 Z%d, Z%d, Z%d", lo, hi, dst)
}

// evex encodes a register-register 512-bit instruction of map 0F38, W0; pp is 2 for F3 and 3 for F2. An absent first
// source is register 0, because its field is stored inverted and the encoding requires 1111.
func evex(dst, src1, src2 int, pp, opcode byte) []byte {
	bit := func(v, n int) byte { return byte(^v >> n & 1) }
	return []byte{
		0x62,
		bit(dst, 3)<<7 | bit(src2, 4)<<6 | bit(src2, 3)<<5 | bit(dst, 4)<<4 | 2,
		byte(^src1&15)<<3 | 4 | pp,
		2<<5 | bit(src1, 4)<<3,
		opcode,
		byte(0xc0 | dst&7<<3 | src2&7),
	}
}

func (fn *Func) bytes(code []byte, format string, args ...any) {
	s := ""
	for i, b := range code {
		if i > 0 {
			s += "; "
		}
		s += fmt.Sprintf("BYTE $0x%02x", b)
	}
	fn.I("%s // %s", s, fmt.Sprintf(format, args...))
}
