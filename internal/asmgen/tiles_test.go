package asmgen

import (
	"bytes"
	"testing"
)

// Encodings as the GNU assembler prints them.
func TestTilesMatchKnownEncodings(t *testing.T) {
	for _, c := range []struct {
		name string
		got  []byte
		want []byte
	}{
		{"ldtilecfg [rsi]", vexMemory(0, 0, 0x49, "SI", "", 0), []byte{0xc4, 0xe2, 0x78, 0x49, 0x06}},
		{"ldtilecfg [r13+64]", vexMemory(0, 0, 0x49, "R13", "", 64), []byte{0xc4, 0xc2, 0x78, 0x49, 0x45, 0x40}},
		{"ldtilecfg [r12]", vexMemory(0, 0, 0x49, "R12", "", 0), []byte{0xc4, 0xc2, 0x78, 0x49, 0x04, 0x24}},
		{"tilerelease", vexTiles(0, 0, 0, 0, 0x49), []byte{0xc4, 0xe2, 0x78, 0x49, 0xc0}},
		{"tilezero tmm5", vexTiles(5, 0, 0, 3, 0x49), []byte{0xc4, 0xe2, 0x7b, 0x49, 0xe8}},
		{"tileloadd tmm0, [rsi+rdx]", vexMemory(0, 3, 0x4b, "SI", "DX", 0), []byte{0xc4, 0xe2, 0x7b, 0x4b, 0x04, 0x16}},
		{"tileloadd tmm7, [r13+r12+64]", vexMemory(7, 3, 0x4b, "R13", "R12", 64),
			[]byte{0xc4, 0x82, 0x7b, 0x4b, 0x7c, 0x25, 0x40}},
		{"tileloadd tmm2, [r8+r15+1024]", vexMemory(2, 3, 0x4b, "R8", "R15", 1024),
			[]byte{0xc4, 0x82, 0x7b, 0x4b, 0x94, 0x38, 0, 4, 0, 0}},
		{"tileloaddt1 tmm3, [rbx+r9]", vexMemory(3, 1, 0x4b, "BX", "R9", 0),
			[]byte{0xc4, 0xa2, 0x79, 0x4b, 0x1c, 0x0b}},
		{"tilestored [rdi+rax], tmm4", vexMemory(4, 2, 0x4b, "DI", "AX", 0),
			[]byte{0xc4, 0xe2, 0x7a, 0x4b, 0x24, 0x07}},
		{"tilestored [r12+r11+128], tmm6", vexMemory(6, 2, 0x4b, "R12", "R11", 128),
			[]byte{0xc4, 0x82, 0x7a, 0x4b, 0xb4, 0x1c, 0x80, 0, 0, 0}},
		{"tdpbf16ps tmm0, tmm4, tmm6", vexTiles(0, 4, 6, 2, 0x5c), []byte{0xc4, 0xe2, 0x4a, 0x5c, 0xc4}},
		{"tdpbf16ps tmm7, tmm1, tmm3", vexTiles(7, 1, 3, 2, 0x5c), []byte{0xc4, 0xe2, 0x62, 0x5c, 0xf9}},
	} {
		if !bytes.Equal(c.got, c.want) {
			t.Errorf("%s: % x, want % x", c.name, c.got, c.want)
		}
	}
}
