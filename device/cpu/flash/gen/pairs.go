package main

import "anneal/internal/asmgen"

// whole returns the requirement on the number of rows for sets that join rows in pairs.
func (s *set) whole() string {
	if s.pair == 2 {
		return " and even"
	}
	return ""
}

// The registers of zipOrder in kernels that join rows.
const orderLow, orderHigh = 28, 29

func (k *kernel) loadOrder() {
	if k.pair == 2 {
		k.I("VMOVUPS ·zipOrder+0(SB), %s", k.v(orderLow))
		k.I("VMOVUPS ·zipOrder+64(SB), %s", k.v(orderHigh))
	}
}

// interleave combines rows a and b of 32 BF16 into 32 words: column c of both rows is word c. The first 16 replace a,
// the others go to high.
func (k *kernel) interleave(a, b, high int) {
	k.op("VMOVAPS", a, high)
	k.op("VPERMT2W", b, orderLow, a)
	k.op("VPERMT2W", b, orderHigh, high)
}

func (s *set) zip(f *asmgen.File) {
	k := s.kernel(f, "zip", "is kernels.zip; rows is positive and even, cols a positive multiple of 32.",
		"dst *float32, ldd int, src *float32, lds, rows, cols int")
	k.loadOrder()
	k.Arg("dst", "DI")
	k.argBytes("ldd", "DX")
	k.Arg("src", "SI")
	k.argBytes("lds", "R8")
	k.Arg("rows", "CX")
	k.I("SHRQ $1, CX")
	k.Arg("cols", "R13")
	k.eachRow(32,
		func() { k.I("MOVQ SI, BX") },
		func() {
			k.I("VMOVUPS (BX), %s", k.v(0))
			k.I("VMOVUPS (BX)(R8*1), %s", k.v(1))
			k.interleave(0, 1, 2)
			k.I("VMOVUPS %s, (DI)(AX*1)", k.v(0))
			k.I("VMOVUPS %s, 64(DI)(AX*1)", k.v(2))
			k.I("ADDQ $64, BX")
		},
		func() {
			k.I("LEAQ (SI)(R8*2), SI")
			k.I("ADDQ DX, DI")
		})
	k.Ret()
}

func (s *set) copyBF16(f *asmgen.File) {
	k := s.kernel(f, "copyBF16", "copies rows; rows is positive, cols a positive multiple of 32.",
		"dst *uint16, ld int, src *uint16, stride, rows, cols int")
	k.Arg("dst", "DI")
	k.Arg("ld", "DX")
	k.I("SHLQ $1, DX")
	k.Arg("src", "SI")
	k.Arg("stride", "R8")
	k.I("SHLQ $1, R8")
	k.Arg("rows", "CX")
	k.Arg("cols", "R13")
	k.I("SHRQ $1, R13")
	k.eachRow(16,
		func() {},
		func() {
			k.I("VMOVUPS (SI)(AX*1), %s", k.v(0))
			k.I("VMOVUPS %s, (DI)(AX*1)", k.v(0))
		},
		func() {
			k.I("ADDQ R8, SI")
			k.I("ADDQ DX, DI")
		})
	k.Ret()
}
