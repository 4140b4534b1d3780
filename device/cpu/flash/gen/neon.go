package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

// NEON's registers hold four lanes, a row of a panel of 16 columns is four of them, and general registers are R0,
// R1, … Kernels that use constants keep them in registers from neonConstants on, numbered as in constants.
const (
	neonConstants = 20
	neonScale     = 31
	neonRow       = 64 // bytes
)

// neon is a function being written for NEON.
type neon struct{ *asmgen.Func }

func neonFile() *asmgen.File {
	f := &asmgen.File{Package: "flash", Generator: "gen/main.go", Arch: "arm64"}
	neonMul(f)
	neonSoftmax(f, false)
	neonGrad(f, false)
	neonDot(f)
	neonScaleRows(f)
	neonTranspose(f)
	neonLoads(f)
	neonStores(f)
	return f
}

// args loads parameters into R0, R1, …; those whose name ends in ":4" or ":2" count elements of that many bytes, and
// are converted to bytes.
func (k neon) args(names ...string) {
	for i, name := range names {
		reg, size := fmt.Sprintf("R%d", i), ""
		if n := len(name); n > 2 && name[n-2] == ':' {
			name, size = name[:n-2], name[n-1:]
		}
		k.Arg(name, reg)
		if size != "" {
			k.I("LSL $%d, %s", map[string]int{"2": 1, "4": 2}[size], reg)
		}
	}
}

// splat sets all lanes of a register to the lower 32 bits of a parameter, or of a number.
func (k neon) splat(r int, param string) {
	k.Arg(param, "R16")
	k.VSplatOf(r, "R16")
}

func (k neon) splatNumber(r int, bits uint32) {
	k.I("MOVW $%#x, R16", bits)
	k.VSplatOf(r, "R16")
}

// repeat writes a loop with the positive number of iterations in a general register.
func (k neon) repeat(count string, body func()) {
	loop := k.NewLabel("loop")
	k.Label(loop)
	body()
	k.I("SUBS $1, %s", count)
	k.I("BNE %s", loop)
}

// load4 and store4 move a row of a panel.
func (k neon) load4(r int, base string) {
	k.VLoadPair(r, r+1, 0, base)
	k.VLoadPair(r+2, r+3, 32, base)
}

func (k neon) store4(r int, base string) {
	k.VStorePair(r, r+1, 0, base)
	k.VStorePair(r+2, r+3, 32, base)
}

// four writes an instruction on four consecutive registers each.
func (k neon) four(name string, d, n, m int) {
	for u := range 4 {
		k.V(name, d+u, n+u, m+u)
	}
}

func (k neon) loadConstants() {
	k.I("MOVD $·constants(SB), R16")
	for c := lowest; c <= c0; c++ {
		k.VLoad(neonConstants+c, 16, 32*c, "R16")
	}
}

// power replaces register x by 2^x, as exp2 does; temp and the three registers after it are overwritten. It takes 20
// instructions, of which 12 are Horner's rule: a copy of the coefficient, to which FMLA adds.
func (k neon) power(x, temp int) {
	c := func(c int) int { return neonConstants + c }
	n, p, q, low := temp, temp+1, temp+2, temp+3
	k.V("fcmgt", low, c(lowest), x) // not for NaN
	k.V("frintn", n, x)
	k.V("fsub", x, x, n)
	k.VCopy(p, c(c5))
	k.V("fmla", p, x, c(c6))
	for next := c4; next <= c0; next++ {
		k.VCopy(q, c(next))
		k.V("fmla", q, x, p)
		p, q = q, p
	}
	k.V("fcvtns", n, n)
	k.VShift("shl", n, n, 23)
	k.V("add", n, n, c(c0)) // the exponent, added to that of 1
	k.V("fmul", p, p, n)
	k.V("bic", x, p, low)
}

// neonMul writes the microkernel of 4 × 16: 16 sums, and for each step along k two LDP of b, four words of a, which
// are multiplied by lane, and 16 FMLA: 24 instructions in 4 cycles of four vector pipes, and 8 loaded registers, of
// which 3 are possible in each cycle.
func neonMul(f *asmgen.File) {
	k := neon{f.Func("mulNEON", "is kernels.mul for tiles of 4 × 16; m and k are positive.",
		"c *float32, ldc int, a *float32, rs, cs int, b *float32, ldb, m, k, add int")}
	const a, b = 16, 24
	k.args("c", "ldc:4", "a", "rs:4", "cs:4", "b", "ldb:4", "m", "k", "add")
	k.I("ADD R3, R3, R10")  // two rows of a
	k.I("ADD R3, R10, R11") // three
	step := func(u int) {
		k.load4(b+4*u, "R13")
		k.VLoad(a+4*u, 4, 0, "R12")
		for i, rows := range []string{"R3", "R10", "R11"} {
			k.VLoadAt(a+4*u+1+i, 4, "R12", rows)
		}
		for i := range 4 {
			for j := range 4 {
				k.VLane("fmla", 4*i+j, b+4*u+j, a+4*u+i, 0)
			}
		}
		k.I("ADD R4, R12")
		k.I("ADD R6, R13")
	}
	tile, odd, done, store := k.NewLabel("tile"), k.NewLabel("odd"), k.NewLabel("done"), k.NewLabel("store")
	k.Label(tile)
	k.I("MOVD R2, R12")
	k.I("MOVD R5, R13")
	for i := range 16 {
		k.VClear(i)
	}
	k.I("LSR $1, R8, R14")
	k.I("CBZ R14, %s", odd)
	k.repeat("R14", func() { step(0); step(1) })
	k.Label(odd)
	k.I("TBZ $0, R8, %s", done)
	step(0)
	k.Label(done)
	k.I("CBZ R9, %s", store)
	k.I("MOVD R0, R12")
	for i := range 4 {
		k.load4(a, "R12")
		k.four("fadd", 4*i, 4*i, a)
		k.I("ADD R1, R12")
	}
	k.Label(store)
	for i := range 4 {
		k.store4(4*i, "R0")
		k.I("ADD R1, R0")
	}
	k.I("ADD R3<<2, R2")
	k.I("SUBS $4, R7")
	k.I("BNE %s", tile)
	k.Ret()
}

// neonSoftmax writes softmax, whose powers are float32, or quads of BF16.
func neonSoftmax(f *asmgen.File, quads bool) {
	const top, sum, x = 0, 4, 8
	name, rows, scale, temp := "softmaxNEON", "positive", neonScale, [2]int{12, 16}
	if quads {
		name, rows, scale, temp = "softmaxBFMMLA", "a positive multiple of 4", 19, [2]int{28, 28}
	}
	k := neon{f.Func(name, "is kernels.softmax; scale is the bits of a float32; rows is "+rows+".",
		"s *float32, rows, scale int, m, l, alpha *float32")}
	k.args("s", "rows")
	k.splat(scale, "scale")
	k.Arg("m", "R3")
	k.Arg("l", "R4")
	k.Arg("alpha", "R5")
	k.loadConstants()

	k.Comment("Maxima down the columns.")
	k.load4(top, "R0")
	k.I("MOVD R0, R6")
	k.I("MOVD R1, R7")
	k.repeat("R7", func() {
		k.load4(x, "R6")
		k.four("fmax", top, top, x)
		k.I("ADD $%d, R6", neonRow)
	})
	k.load4(x, "R3")
	for u := range 4 {
		k.V("fmul", top+u, top+u, scale)
	}
	k.four("fmax", top, top, x)
	k.store4(top, "R3")

	k.Comment("Rescale the earlier sums to the new maxima.")
	k.four("fsub", x, x, top)
	k.load4(sum, "R4")
	for u := range 4 {
		k.power(x+u, temp[u%2])
	}
	k.store4(x, "R5")
	k.four("fmul", sum, sum, x)
	for u := range 4 {
		k.V("fneg", top+u, top+u)
	}

	k.Comment("Powers and their sums.")
	if quads {
		k.I("MOVD R0, R6")
		k.I("LSR $2, R1")
		k.repeat("R1", func() { k.powersToQuads(top, sum, scale) })
	} else {
		k.repeat("R1", func() {
			k.load4(temp[0], "R0")
			for u := range 4 {
				k.VCopy(x+u, top+u)
				k.V("fmla", x+u, temp[0]+u, scale)
			}
			for u := range 4 {
				k.power(x+u, temp[u%2])
			}
			k.four("fadd", sum, sum, x)
			k.store4(x, "R0")
			k.I("ADD $%d, R0", neonRow)
		})
	}
	k.store4(sum, "R4")
	k.Ret()
}

// neonGrad writes grad, whose results are float32, or pairs of BF16.
func neonGrad(f *asmgen.File, pairs bool) {
	name := "gradNEON"
	if pairs {
		name = "gradBFMMLA"
	}
	k := neon{f.Func(name, "is kernels.grad; scale is the bits of a float32; rows is positive.",
		"p, ds, s, dp *float32, ld, rows, scale int, lse, delta *float32")}
	const lse, delta, x, y, temp = 0, 4, 8, 12, 16
	k.args("p", "ds", "s", "dp", "ld:4", "rows")
	k.splat(neonScale, "scale")
	k.loadConstants()
	k.Arg("lse", "R6")
	k.load4(lse, "R6")
	for u := range 4 {
		k.V("fneg", lse+u, lse+u)
	}
	k.Arg("delta", "R6")
	k.load4(delta, "R6")
	k.repeat("R5", func() {
		k.load4(y, "R2")
		for u := range 4 {
			k.VCopy(x+u, lse+u)
			k.V("fmla", x+u, y+u, neonScale)
		}
		k.load4(y, "R3")
		k.four("fsub", y, y, delta)
		for u := range 4 {
			k.power(x+u, temp)
		}
		k.four("fmul", y, y, x)
		if pairs {
			k.narrow(temp, x)
			k.narrow(temp+2, y)
			k.VStorePair(temp, temp+1, 0, "R0")
			k.VStorePair(temp+2, temp+3, 0, "R1")
		} else {
			k.store4(x, "R0")
			k.store4(y, "R1")
		}
		for _, pointer := range []string{"R0", "R1", "R2", "R3"} {
			k.I("ADD R4, %s", pointer)
		}
	})
	k.Ret()
}

// eachRow writes a loop over rows, and in it one over chunks of 16 of the columns in cols. The body moves cursors,
// which start at the rows' addresses.
func (k neon) eachRow(rows, cols string, cursors map[string]string, begin, body, end func()) {
	k.repeat(rows, func() {
		for _, r := range []string{"R10", "R11"} {
			if row, ok := cursors[r]; ok {
				k.I("MOVD %s, %s", row, r)
			}
		}
		begin()
		k.I("LSR $4, %s, R12", cols)
		k.repeat("R12", body)
		end()
	})
}

func neonDot(f *asmgen.File) {
	k := neon{f.Func("dotNEON", "is kernels.dot; rows and cols are positive.", "d, a, b *float32, ld, rows, cols int")}
	k.args("d", "a", "b", "ld:4", "rows", "cols")
	k.eachRow("R4", "R5", map[string]string{"R10": "R1", "R11": "R2"},
		func() {
			for u := range 4 {
				k.VClear(u)
			}
		},
		func() {
			k.load4(4, "R10")
			k.load4(8, "R11")
			k.four("fmla", 0, 4, 8)
			k.I("ADD $%d, R10", neonRow)
			k.I("ADD $%d, R11", neonRow)
		},
		func() {
			k.V("fadd", 0, 0, 1)
			k.V("fadd", 2, 2, 3)
			k.V("fadd", 0, 0, 2)
			k.V("faddp", 0, 0, 0)
			k.V("faddp.s", 0, 0)
			k.VStore(0, 4, 0, "R0")
			k.I("ADD $4, R0")
			k.I("ADD R3, R1")
			k.I("ADD R3, R2")
		})
	k.Ret()
}

func neonScaleRows(f *asmgen.File) {
	k := neon{f.Func("scaleRowsNEON", "is kernels.scaleRows; rows and cols are positive.",
		"x *float32, ld, rows, cols int, f *float32")}
	k.args("x", "ld:4", "rows", "cols", "f")
	k.eachRow("R2", "R3", map[string]string{"R10": "R0"},
		func() { k.VLoad(4, 4, 0, "R4") },
		func() {
			k.load4(0, "R10")
			for u := range 4 {
				k.VLane("fmul", u, u, 4, 0)
			}
			k.store4(0, "R10")
			k.I("ADD $%d, R10", neonRow)
		},
		func() {
			k.I("ADD $4, R4")
			k.I("ADD R1, R0")
		})
	k.Ret()
}

// neonTranspose transposes squares of 4 × 4, four below each other at a time: rows are interleaved by elements, and
// then by pairs.
func neonTranspose(f *asmgen.File) {
	k := neon{f.Func("transposeNEON", "is kernels.transpose for 16 rows; cols is a positive multiple of 4.",
		"dst, src *float32, ld, cols int")}
	k.args("dst", "src", "ld:4", "cols")
	k.I("LSR $2, R3")
	k.repeat("R3", func() {
		k.I("MOVD R1, R4")
		for group := range 4 {
			for i := range 4 {
				k.VLoad(i, 16, 0, "R4")
				k.I("ADD R2, R4")
			}
			for i := range 2 {
				k.V("zip1", 4+2*i, 2*i, 2*i+1)
				k.V("zip2", 5+2*i, 2*i, 2*i+1)
			}
			for c := range 4 {
				k.V([]string{"zip1.2d", "zip2.2d"}[c%2], c, 4+c/2, 6+c/2)
				k.VStore(c, 16, neonRow*c+16*group, "R0")
			}
		}
		k.I("ADD $16, R1")
		k.I("ADD $%d, R0", 4*neonRow)
	})
	k.Ret()
}

// neonLoads writes the kernels that read 16 elements at a time to registers 0 … 3.
func neonLoads(f *asmgen.File) {
	for _, l := range []struct {
		name, doc, src, more string
		size                 int
		read                 func(k neon)
	}{
		{"load", "; scale is the bits of a float32; rows is", "*float32", ", scale", 4, func(k neon) {
			k.load4(0, "R11")
			for u := range 4 {
				k.V("fmul", u, u, neonScale)
			}
		}},
		{"loadBF16", "; rows is", "*uint16", "", 2, func(k neon) {
			k.VLoadPair(4, 5, 0, "R11")
			for half := range 2 {
				k.VShift("shll", 2*half, 4+half, 16)
				k.VShift("shll2", 2*half+1, 4+half, 16)
			}
		}},
		{"loadF16", "; rows is", "*uint16", "", 2, func(k neon) {
			k.VLoadPair(4, 5, 0, "R11")
			for half := range 2 {
				k.V("fcvtl.4s", 2*half, 4+half)
				k.V("fcvtl2.4s", 2*half+1, 4+half)
			}
		}},
	} {
		k := neon{f.Func(l.name+"NEON", "is kernels."+l.name+l.doc+" positive, cols a positive multiple of 16.",
			"dst *float32, ld int, src "+l.src+", stride, rows, cols"+l.more+" int")}
		k.args("dst", "ld:4", "src", map[int]string{2: "stride:2", 4: "stride:4"}[l.size], "rows", "cols")
		if l.more != "" {
			k.splat(neonScale, "scale")
		}
		k.eachRow("R4", "R5", map[string]string{"R10": "R0", "R11": "R2"},
			func() {},
			func() {
				l.read(k)
				k.store4(0, "R10")
				k.I("ADD $%d, R10", neonRow)
				k.I("ADD $%d, R11", 16*l.size)
			},
			func() {
				k.I("ADD R1, R0")
				k.I("ADD R3, R2")
			})
		k.Ret()
	}
}

// neonStores writes the kernels that scale 16 elements at a time and round them from registers 0 … 3. BF16 is rounded
// to nearest even in integers: half of the last place is added, or just below half if that is even; a NaN keeps its
// upper half and becomes quiet. The upper halves are the result.
func neonStores(f *asmgen.File) {
	const temp, half, quiet = 8, 29, 30
	for _, s := range []struct {
		name  string
		round func(k neon)
	}{
		{"storeBF16", func(k neon) {
			for u := range 4 {
				number, odd, up := temp, temp+1, temp+2
				k.V("fcmeq", number, u, u)
				k.VShift("shl", odd, u, 15)
				k.V("add", up, u, half)
				k.VShift("usra", up, odd, 31)
				k.V("orr", u, u, quiet)
				k.V("bit", u, up, number)
			}
			k.V("uzp2.8h", 4, 0, 1)
			k.V("uzp2.8h", 5, 2, 3)
		}},
		{"storeF16", func(k neon) {
			for u := range 2 {
				k.V("fcvtn.4h", 4+u, 2*u)
				k.V("fcvtn2.8h", 4+u, 2*u+1)
			}
		}},
	} {
		k := neon{f.Func(s.name+"NEON", "is kernels."+s.name+
			"; scale is the bits of a float32; rows is positive, cols a positive multiple of 16.",
			"dst *uint16, stride int, src *float32, ld, rows, cols, scale int")}
		k.args("dst", "stride:2", "src", "ld:4", "rows", "cols")
		k.splat(neonScale, "scale")
		if s.name == "storeBF16" {
			k.splatNumber(half, 0x7fff)
			k.splatNumber(quiet, 0x400000)
		}
		k.eachRow("R4", "R5", map[string]string{"R10": "R0", "R11": "R2"},
			func() {},
			func() {
				k.load4(0, "R11")
				for u := range 4 {
					k.V("fmul", u, u, neonScale)
				}
				s.round(k)
				k.VStorePair(4, 5, 0, "R10")
				k.I("ADD $32, R10")
				k.I("ADD $%d, R11", neonRow)
			},
			func() {
				k.I("ADD R1, R0")
				k.I("ADD R3, R2")
			})
		k.Ret()
	}
}
