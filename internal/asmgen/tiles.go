package asmgen

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// The Go assembler lacks the AMX instructions, so they are written as bytes. A tile T0…T7 is a matrix of up to 16
// rows of up to 64 bytes: 16 FP32 sums or 32 BF16 elements per row. LDTILECFG sets the sizes from 64 bytes in memory:
//
//	0       palette: 1
//	1–15    zero
//	16–31   bytes in a row of each tile, 16 bits each
//	32–47   zero
//	48–55   rows of each tile, 8 bits each
//	56–63   zero
//
// The rows of a tile in memory are stride bytes apart: address base + disp + i·stride for row i, with base and stride
// in general registers. A function that configures tiles releases them before it returns, because goroutines share
// threads: other goroutines would see the configuration, and every switch of threads would copy 8 KiB.

// LDTILECFG configures the tiles from the 64 bytes at base, and clears them (VEX.128.NP.0F38.W0 49 /0).
func (fn *Func) LDTILECFG(base string) {
	fn.bytes(vexMemory(0, 0, 0x49, base, "", 0), "LDTILECFG (%s)", base)
}

// TILERELEASE releases the tiles (VEX.128.NP.0F38.W0 49 C0).
func (fn *Func) TILERELEASE() { fn.bytes(vexTiles(0, 0, 0, 0, 0x49), "TILERELEASE") }

// TILEZERO clears a tile (VEX.128.F2.0F38.W0 49 11:rrr:000).
func (fn *Func) TILEZERO(t int) { fn.bytes(vexTiles(t, 0, 0, 3, 0x49), "TILEZERO T%d", t) }

// TILELOADD loads a tile (VEX.128.F2.0F38.W0 4B /r with SIB).
func (fn *Func) TILELOADD(disp int, base, stride string, t int) {
	fn.bytes(vexMemory(t, 3, 0x4b, base, stride, disp), "TILELOADD %d(%s)(%s*1), T%d", disp, base, stride, t)
}

// TILELOADDT1 loads a tile and hints that it is not needed again soon (VEX.128.66.0F38.W0 4B /r with SIB).
func (fn *Func) TILELOADDT1(disp int, base, stride string, t int) {
	fn.bytes(vexMemory(t, 1, 0x4b, base, stride, disp), "TILELOADDT1 %d(%s)(%s*1), T%d", disp, base, stride, t)
}

// TILESTORED stores a tile (VEX.128.F3.0F38.W0 4B /r with SIB).
func (fn *Func) TILESTORED(t, disp int, base, stride string) {
	fn.bytes(vexMemory(t, 2, 0x4b, base, stride, disp), "TILESTORED T%d, %d(%s)(%s*1)", t, disp, base, stride)
}

// TDPBF16PS adds to the FP32 tile c the product of a, rows of BF16 along k, and b, rows of BF16 pairs adjacent along
// k: c(i, j) += Σ_p a(i, 2p)·b(p, 2j) + a(i, 2p+1)·b(p, 2j+1) (VEX.128.F3.0F38.W0 5C /r). Denormals count as 0.
func (fn *Func) TDPBF16PS(b, a, c int) {
	fn.bytes(vexTiles(c, a, b, 2, 0x5c), "TDPBF16PS T%d, T%d, T%d", b, a, c)
}

// vexTiles encodes an instruction of map 0F38, W0, on tiles: dst in ModRM.reg, src1 in ModRM.rm, src2 in VEX.vvvv. pp
// is 1 for 66, 2 for F3 and 3 for F2.
func vexTiles(dst, src1, src2 int, pp, opcode byte) []byte {
	return []byte{0xc4, 0xe2, byte(^src2&15)<<3 | pp, opcode, byte(0xc0 | dst<<3 | src1)}
}

// vexMemory encodes an instruction with a memory operand; without stride it has no index.
func vexMemory(t int, pp, opcode byte, base, stride string, disp int) []byte {
	b, x := general(base), 0
	if stride != "" {
		x = general(stride)
	}
	mod, tail := byte(0), []byte{}
	switch {
	case int(int8(disp)) != disp:
		mod, tail = 2, binary.LittleEndian.AppendUint32(nil, uint32(disp))
	case disp != 0 || b&7 == 5: // BP and R13 require a displacement
		mod, tail = 1, []byte{byte(disp)}
	}
	modrm, index := mod<<6|byte(t)<<3|byte(b&7), []byte{}
	if stride != "" || b&7 == 4 { // as base, SP and R12 require a SIB byte
		if stride == "" {
			x = 4 // no index
		}
		modrm, index = mod<<6|byte(t)<<3|4, []byte{byte(x&7)<<3 | byte(b&7)}
	}
	head := []byte{0xc4, byte(^b>>3&1)<<5 | byte(^x>>3&1)<<6 | 0x80 | 2, 0x78 | pp, opcode, modrm}
	return slices.Concat(head, index, tail)
}

// general returns the number of a general register.
func general(name string) int {
	n := slices.Index([]string{"AX", "CX", "DX", "BX", "SP", "BP", "SI", "DI", "R8", "R9", "R10", "R11", "R12", "R13",
		"R14", "R15"}, name)
	if n < 0 {
		panic(fmt.Sprintf("asmgen: %q is no general register", name))
	}
	return n
}
