package main

import "anneal/internal/asmgen"

// eachRow writes a loop over CX rows and, inside, over the chunks of R13 columns. body processes one chunk of a row,
// at byte offset AX (for float32; half of it for BF16).
func (k *kernel) eachRow(chunk int, begin, body, end func()) {
	k.I("SHLQ $2, R13")
	k.repeat("CX", func() {
		begin()
		k.I("XORQ AX, AX")
		loop := k.NewLabel("chunk")
		k.Label(loop)
		body()
		k.I("ADDQ $%d, AX", 4*chunk)
		k.I("CMPQ AX, R13")
		k.I("JLT %s", loop)
		end()
	})
}

func (s *set) scaleRows(f *asmgen.File) {
	k := s.kernel(f, "scaleRows", "is kernels.scaleRows; rows and cols are positive.",
		"x *float32, ld, rows, cols int, f *float32")
	k.Arg("x", "DI")
	k.argBytes("ld", "DX")
	k.Arg("rows", "CX")
	k.Arg("cols", "R13")
	k.Arg("f", "SI")
	k.eachRow(s.tileN,
		func() { k.I("VBROADCASTSS (SI), %s", k.v(0)) },
		func() {
			for u := range 2 {
				k.I("VMULPS %d(DI)(AX*1), %s, %s", u*s.bytes(), k.v(0), k.v(1+u))
				k.I("VMOVUPS %s, %d(DI)(AX*1)", k.v(1+u), u*s.bytes())
			}
		},
		func() {
			k.I("ADDQ $4, SI")
			k.I("ADDQ DX, DI")
		})
	k.Ret()
}

func (s *set) dot(f *asmgen.File) {
	k := s.kernel(f, "dot", "is kernels.dot; rows and cols are positive.", "d, a, b *float32, ld, rows, cols int")
	k.Arg("d", "DI")
	k.Arg("a", "SI")
	k.Arg("b", "BX")
	k.argBytes("ld", "DX")
	k.Arg("rows", "CX")
	k.Arg("cols", "R13")
	k.eachRow(s.tileN,
		func() {
			k.op("VXORPS", 0, 0, 0)
			k.op("VXORPS", 1, 1, 1)
		},
		func() {
			for u := range 2 {
				k.I("VMOVUPS %d(SI)(AX*1), %s", u*s.bytes(), k.v(2+u))
				k.I("VMOVUPS %d(BX)(AX*1), %s", u*s.bytes(), k.v(4+u))
				k.fma(4+u, 2+u, u)
			}
		},
		func() {
			k.op("VADDPS", 1, 0, 0)
			if s.wide() {
				k.I("VEXTRACTF64X4 $1, Z0, Y1")
				k.I("VADDPS Y1, Y0, Y0")
			}
			k.I("VEXTRACTF128 $1, Y0, X1")
			k.I("VADDPS X1, X0, X0")
			k.I("VHADDPS X0, X0, X0")
			k.I("VHADDPS X0, X0, X0")
			k.I("VMOVSS X0, (DI)")
			k.I("ADDQ $4, DI")
			k.I("ADDQ DX, SI")
			k.I("ADDQ DX, BX")
		})
	k.Ret()
}

// load writes the kernel that reads float32 and scales it.
func (s *set) load(f *asmgen.File) {
	k := s.kernel(f, "load",
		"is kernels.load; scale is the bits of a float32; rows is positive, cols a positive multiple of 16.",
		"dst *float32, ld int, src *float32, stride, rows, cols, scale int")
	k.argScale(0)
	k.widen(4, func(u int) { k.I("VMULPS %d(BX), %s, %s", u*s.bytes(), k.v(0), k.v(1+u)) })
}

func (s *set) loadBF16(f *asmgen.File) {
	k := s.kernel(f, "loadBF16", "is kernels.loadBF16; rows is positive, cols a positive multiple of 16.",
		"dst *float32, ld int, src *uint16, stride, rows, cols int")
	k.widen(2, func(u int) {
		k.I("VPMOVZXWD %d(BX), %s", u*s.bytes()/2, k.v(1+u))
		k.I("VPSLLD $16, %[1]s, %[1]s", k.v(1+u))
	})
}

func (s *set) loadF16(f *asmgen.File) {
	k := s.kernel(f, "loadF16", "is kernels.loadF16; rows is positive, cols a positive multiple of 16.",
		"dst *float32, ld int, src *uint16, stride, rows, cols int")
	k.widen(2, func(u int) { k.I("VCVTPH2PS %d(BX), %s", u*s.bytes()/2, k.v(1+u)) })
}

// widen writes a load from narrower elements of size bytes; read loads register number u of the 16 elements at BX to
// register 1+u.
func (k *kernel) widen(size int, read func(u int)) {
	k.Arg("dst", "DI")
	k.argBytes("ld", "DX")
	k.Arg("src", "SI")
	k.Arg("stride", "R8")
	k.I("IMULQ $%d, R8", size)
	k.Arg("rows", "CX")
	k.Arg("cols", "R13")
	k.eachRow(16,
		func() { k.I("MOVQ SI, BX") },
		func() {
			for u := range 16 / k.lanes {
				read(u)
				k.I("VMOVUPS %s, %d(DI)(AX*1)", k.v(1+u), u*k.bytes())
			}
			k.I("ADDQ $%d, BX", 16*size)
		},
		func() {
			k.I("ADDQ R8, SI")
			k.I("ADDQ DX, DI")
		})
	k.Ret()
}

// storeBF16 rounds to nearest even in integers, u + 0x7fff + (u>>16 & 1) >> 16, and keeps NaN quiet.
func (s *set) storeBF16(f *asmgen.File) {
	s.storeNarrow(f, "storeBF16", func(k *kernel, u, x int) {
		t, r := x+1, x+2
		k.I("VPSRLD $16, %s, %s", k.v(x), k.v(t))
		and, or := "VPAND", "VPOR"
		if s.wide() {
			and, or = "VPANDD", "VPORD"
		}
		k.with(and, lsb, t, r)
		k.with("VPADDD", half, r, r)
		k.op("VPADDD", x, r, r)
		k.I("VPSRLD $16, %[1]s, %[1]s", k.v(r))
		if s.wide() {
			k.I("VCMPPS $3, %[1]s, %[1]s, K1", k.v(x))
			k.I("%s %s, %s, K1, %s", or, k.constant(quiet), k.v(t), k.v(r))
			k.I("VPMOVDW %s, %d(BX)", k.v(r), u*32)
			return
		}
		k.with(or, quiet, t, t)
		k.I("VCMPPS $3, %[1]s, %[1]s, %[1]s", k.v(x))
		k.I("VPBLENDVB %s, %s, %s, %s", k.v(x), k.v(t), k.v(r), k.v(r))
		k.I("VEXTRACTI128 $1, %s, X%d", k.v(r), t)
		k.I("VPACKUSDW X%[1]d, X%[2]d, X%[2]d", t, r)
		k.I("VMOVDQU X%d, %d(BX)", r, u*16)
	})
}

func (s *set) storeF16(f *asmgen.File) {
	s.storeNarrow(f, "storeF16", func(k *kernel, u, x int) {
		k.I("VCVTPS2PH $0, %s, %d(BX)", k.v(x), u*s.bytes()/2)
	})
}

// storeNarrow writes a store of 16-bit elements; round converts register u of 16 of them, which is in register x, and
// stores them at BX. The two registers after x are scratch.
func (s *set) storeNarrow(f *asmgen.File, name string, round func(k *kernel, u, x int)) {
	k := s.kernel(f, name, "is kernels."+name+
		"; scale is the bits of a float32; rows is positive, cols a positive multiple of 16.",
		"dst *uint16, stride int, src *float32, ld, rows, cols, scale int")
	k.loadConstants(lsb, quiet)
	k.Arg("dst", "DI")
	k.Arg("stride", "R8")
	k.I("SHLQ $1, R8")
	k.Arg("src", "SI")
	k.argBytes("ld", "DX")
	k.Arg("rows", "CX")
	k.Arg("cols", "R13")
	k.argScale(0)
	k.eachRow(16,
		func() { k.I("MOVQ DI, BX") },
		func() {
			for u := range 16 / s.lanes {
				x := 1 + 4*u
				k.I("VMULPS %d(SI)(AX*1), %s, %s", u*s.bytes(), k.v(0), k.v(x))
				round(k, u, x)
			}
			k.I("ADDQ $32, BX")
		},
		func() {
			k.I("ADDQ R8, DI")
			k.I("ADDQ DX, SI")
		})
	k.Ret()
}
