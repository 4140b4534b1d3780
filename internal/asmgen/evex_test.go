package asmgen

import (
	"bytes"
	"testing"
)

// Encodings as LLVM's assembler prints them.
func TestEVEXMatchesKnownEncodings(t *testing.T) {
	for _, c := range []struct {
		name string
		got  []byte
		want []byte
	}{
		{"vdpbf16ps zmm0, zmm13, zmm12", evex(0, 13, 12, 2, 0x52), []byte{0x62, 0xd2, 0x16, 0x48, 0x52, 0xc4}},
		{"vdpbf16ps zmm30, zmm29, zmm28", evex(30, 29, 28, 2, 0x52), []byte{0x62, 0x02, 0x16, 0x40, 0x52, 0xf4}},
		{"vcvtne2ps2bf16 zmm30, zmm29, zmm28", evex(30, 29, 28, 3, 0x72), []byte{0x62, 0x02, 0x17, 0x40, 0x72, 0xf4}},
		{"vcvtneps2bf16 ymm30, zmm29", evex(30, 0, 29, 2, 0x72), []byte{0x62, 0x02, 0x7e, 0x48, 0x72, 0xf5}},
	} {
		if !bytes.Equal(c.got, c.want) {
			t.Errorf("%s: % x, want % x", c.name, c.got, c.want)
		}
	}
}
