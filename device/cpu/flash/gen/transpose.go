package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

// transpose transposes squares of lanes × lanes. It interleaves pairs of rows by elements, then by pairs of elements,
// which leaves column 4L+j of four rows in 128-bit part L of a register, and then gathers the parts.
func (s *set) transpose(f *asmgen.File) {
	k := s.kernel(f, "transpose", fmt.Sprintf("is kernels.transpose for %d rows; cols is a positive multiple of %d.",
		s.tileN, s.lanes),
		"dst, src *float32, ld, cols int")
	k.Arg("dst", "DI")
	k.Arg("src", "SI")
	k.argBytes("ld", "DX")
	k.Arg("cols", "CX")
	k.I("SHRQ $%d, CX", map[int]int{8: 3, 16: 4}[s.lanes])
	k.repeat("CX", func() {
		k.I("MOVQ SI, BX")
		for half := range 2 {
			k.square(half * s.bytes())
		}
		k.I("ADDQ $%d, SI", s.bytes())
		k.I("ADDQ $%d, DI", s.lanes*2*s.bytes())
	})
	k.Ret()
}

// square transposes the lanes rows from BX, which it advances, to the rows from DI, at a byte offset.
func (k *kernel) square(offset int) {
	for i := range k.lanes {
		k.loadTo(i, 0, "BX")
		k.I("ADDQ DX, BX")
	}
	k.turned(func(c, r int) { k.storeTo(r, offset+c*2*k.bytes(), "DI") })
}

// turned transposes the first lanes registers; column stores column c, which is in register r.
func (k *kernel) turned(column func(c, r int)) {
	n := k.lanes
	for i := 0; i < n; i += 2 {
		k.op("VUNPCKLPS", i+1, i, n+i)
		k.op("VUNPCKHPS", i+1, i, n+i+1)
	}
	for g := 0; g < n; g += 4 {
		for j := range 2 {
			k.op("VUNPCKLPD", n+g+2+j, n+g+j, g+2*j)
			k.op("VUNPCKHPD", n+g+2+j, n+g+j, g+2*j+1)
		}
	}
	for j := range 4 {
		if !k.wide() {
			for part, sel := range []int{0x20, 0x31} {
				k.I("VPERM2F128 $%#x, %s, %s, %s", sel, k.v(4+j), k.v(j), k.v(n+part))
				column(4*part+j, n+part)
			}
			continue
		}
		for odd, sel := range []int{0x88, 0xdd} { // parts 0 and 2, then parts 1 and 3, of each group of four rows
			a, b := n+4*odd, n+4*odd+1
			k.I("VSHUFF32X4 $%#x, %s, %s, %s", sel, k.v(4+j), k.v(j), k.v(a))
			k.I("VSHUFF32X4 $%#x, %s, %s, %s", sel, k.v(12+j), k.v(8+j), k.v(b))
			for high, pick := range []int{0x88, 0xdd} {
				r := n + 4*odd + 2 + high
				k.I("VSHUFF32X4 $%#x, %s, %s, %s", pick, k.v(b), k.v(a), k.v(r))
				column(4*(odd+2*high)+j, r)
			}
		}
	}
}
