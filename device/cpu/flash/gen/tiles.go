package main

import (
	"fmt"

	"anneal/internal/asmgen"
)

// The kernels on matrix units process a list of pieces, described in units.go of the package, in one call: tiles are
// configured once, and the scores of a piece stay in the first-level cache. Unless documented otherwise, matrices
// have rows of 128 bytes: 32 sums, or 32 pairs of elements.

// Byte offsets of the constants in amxConstants.
const (
	nothing = 4 * iota // −Inf
	roundUp            // half of the last place of BF16, as an integer
	exact              // six coefficients of 2^x on [0, 1) from the highest, without the last, which is 1
	_
	_
	_
	_
	_
	rough // the four of a polynomial of degree 4
	_
	_
	_
	one
)

// Registers that hold constants in these kernels.
const (
	scaleReg = 31
	halfReg  = 30 // roundUp
	infReg   = 29 // nothing
	oneReg   = 28
	coefReg  = 22 // and the next ones
)

// begin configures tiles, loads constants, and sets R8 to the stride of most matrices.
func (k *kernel) begin(coefficients, degree int) {
	k.I("LDMXCSR ·flushSubnormals(SB)")
	k.I("LEAQ ·amxShapes(SB), AX")
	k.LDTILECFG("AX")
	k.I("MOVQ $128, R8")
	k.broadcast(roundUp, halfReg)
	k.broadcast(nothing, infReg)
	k.broadcast(one, oneReg)
	for i := range degree {
		k.broadcast(coefficients+4*i, coefReg+i)
	}
	k.argScale(scaleReg)
	k.I("MOVL $0xaaaaaaaa, AX")
	k.I("KMOVD AX, K7")
}

func (k *kernel) end() {
	k.TILERELEASE()
	k.I("LDMXCSR ·keepSubnormals(SB)")
	k.Ret()
}

func (k *kernel) broadcast(at, r int) { k.I("VBROADCASTSS ·amxConstants+%d(SB), %s", at, k.v(r)) }

// eachPiece writes the loop over n pieces of size bytes, from R12 on.
func (k *kernel) eachPiece(size int, body func()) {
	next := k.NewLabel("piece")
	k.Arg("pieces", "R12")
	k.Label(next)
	body()
	k.I("ADDQ $%d, R12", size)
	k.I("DECQ %s", k.ArgRef("n"))
	k.I("JNZ %s", next)
}

// product writes c [16·CX, 32] = a · b, or adds to c if the operand fresh is 0. fresh is a field, $0, or empty, which
// means not 0. c is at DI, a at SI and b at BX. steps, a register or a parameter, counts 32 elements of the sum. Rows
// of c are cStride bytes apart, those of a aStride and those of b bStride; these are registers, and aRows is 16 rows
// of a. DI, SI, CX, R11, R13 and AX are overwritten. With two steps, as for heads of 64 and tiles of 64 keys, b stays
// in tiles.
func (k *kernel) product(cStride, aStride, aRows, bStride, steps, fresh string) {
	many, done := k.NewLabel("many"), k.NewLabel("done")
	k.I("MOVQ BX, R13")
	k.I("CMPQ %s, $2", steps)
	k.I("JNE %s", many)
	for step := range 2 {
		k.TILELOADD(0, "R13", bStride, 4+2*step)
		k.TILELOADD(64, "R13", bStride, 5+2*step)
		k.advance("R13", bStride)
	}
	k.rows(cStride, aRows, fresh, func() {
		for step := range 2 {
			k.TILELOADD(64*step, "SI", aStride, 2+step)
			k.TDPBF16PS(4+2*step, 2+step, 0)
			k.TDPBF16PS(5+2*step, 2+step, 1)
		}
	})
	k.I("JMP %s", done)
	k.Label(many)
	k.rows(cStride, aRows, fresh, func() {
		k.I("MOVQ SI, R11")
		k.I("MOVQ BX, R13")
		k.I("MOVQ %s, AX", steps)
		k.repeat("AX", func() {
			k.TILELOADD(0, "R11", aStride, 2)
			k.TILELOADD(0, "R13", bStride, 3)
			k.TDPBF16PS(3, 2, 0)
			k.TILELOADD(64, "R13", bStride, 4)
			k.TDPBF16PS(4, 2, 1)
			k.I("ADDQ $64, R11")
			k.advance("R13", bStride)
		})
	})
	k.Label(done)
}

// rows writes the loop of product over 16 rows of c, in T0 and T1; sum writes the sums.
func (k *kernel) rows(cStride, aRows, fresh string, sum func()) {
	k.repeat("CX", func() {
		switch fresh {
		case "":
			k.TILEZERO(0)
			k.TILEZERO(1)
		case "$0":
			k.TILELOADD(0, "DI", cStride, 0)
			k.TILELOADD(64, "DI", cStride, 1)
		default:
			empty, ready := k.NewLabel("empty"), k.NewLabel("ready")
			k.I("CMPQ %s, $0", fresh)
			k.I("JNE %s", empty)
			k.TILELOADD(0, "DI", cStride, 0)
			k.TILELOADD(64, "DI", cStride, 1)
			k.I("JMP %s", ready)
			k.Label(empty)
			k.TILEZERO(0)
			k.TILEZERO(1)
			k.Label(ready)
		}
		sum()
		k.TILESTORED(0, 0, "DI", cStride)
		k.TILESTORED(1, 64, "DI", cStride)
		k.advance("DI", cStride)
		k.I("ADDQ %s, SI", aRows)
	})
}

// advance moves a pointer by 16 rows.
func (k *kernel) advance(pointer, stride string) {
	for range 2 {
		k.I("LEAQ (%s)(%s*8), %[1]s", pointer, stride)
	}
}

// power replaces register x by 2^x: 2^⌊x⌋ · p(x − ⌊x⌋). Results below 2^−126 are 0, overflows Inf; NaN stays NaN. f
// and p are overwritten. 2^0 is exactly 1. Relative errors: degree 6 1.2e-7, degree 4 3e-6, a thousandth of the error
// of rounding to BF16.
func (k *kernel) power(x, f, p, degree int) {
	k.I("VREDUCEPS $1, %s, %s", k.v(x), k.v(f))
	k.op("VMOVAPS", coefReg, p)
	for i := 1; i < degree; i++ {
		k.op("VFMADD213PS", coefReg+i, f, p)
	}
	k.op("VFMADD213PS", oneReg, f, p)
	k.op("VSCALEFPS", x, p, x)
}

// round adds to FP32 numbers so that their upper halves become BF16, rounded to nearest, ties away from 0.
func (k *kernel) round(regs ...int) {
	for _, r := range regs {
		k.op("VPADDD", halfReg, r, r)
	}
}

// down combines rows a and b of 16 rounded numbers into words in a.
func (k *kernel) down(a, b int) {
	k.I("VPSRLD $16, %[1]s, %[1]s", k.v(a))
	k.I("VMOVDQU16 %s, K7, %s", k.v(b), k.v(a))
}

// The fields of a piece, as byte offsets.
const (
	pieceQ = 8 * iota
	pieceO
	pieceStat
	pieceLo
	pieceRows
	pieceSeen
	pieceFresh
	pieceSize
)

func piece(field int) string { return fmt.Sprintf("%d(R12)", field) }

// attend writes the forward pass.
func (s *set) attend(f *asmgen.File) {
	k := s.kernel(f, "attend", "is kernels.attend; kstride is in bytes, steps counts 32 elements of queries and keys, "+
		"blocks 16 of values; scale is the bits of a float32; n is positive.",
		"k *float32, kstride int, v, q, o, m, l, s *float32, pieces *piece, n, steps, blocks, scale int")
	const top, sum, x, temp = 0, 4, 6, 10
	k.begin(exact, 6)
	k.eachPiece(pieceSize, func() {
		k.Comment("Scores [rows, 32] = K · Qᵀ.")
		k.Arg("s", "DI")
		k.Arg("kstride", "R9")
		k.I("MOVQ %s, SI", piece(pieceLo))
		k.I("IMULQ R9, SI")
		k.I("ADDQ %s, SI", k.ArgRef("k"))
		k.Arg("q", "BX")
		k.I("ADDQ %s, BX", piece(pieceQ))
		k.I("MOVQ R9, R10")
		k.I("SHLQ $4, R10")
		k.I("MOVQ %s, CX", piece(pieceRows))
		k.I("SHRQ $4, CX")
		k.product("R8", "R9", "R10", "R8", k.ArgRef("steps"), "")

		k.Comment("Maxima down the columns; hidden scores become −Inf.")
		seen, known := k.NewLabel("seen"), k.NewLabel("known")
		k.Arg("s", "SI")
		k.I("MOVQ %s, CX", piece(pieceRows))
		for u := range 4 {
			k.op("VMOVAPS", infReg, top+u)
		}
		k.I("MOVQ %s, BX", piece(pieceSeen))
		k.I("TESTQ BX, BX")
		k.I("JNE %s", seen)
		k.I("SHRQ $1, CX")
		k.repeat("CX", func() {
			for u := range 4 {
				k.I("VMAXPS %d(SI), %[2]s, %[2]s", u*64, k.v(top+u))
			}
			k.I("ADDQ $256, SI")
		})
		k.I("JMP %s", known)
		k.Label(seen)
		k.repeat("CX", func() {
			k.hide(x, 0)
			for u := range 2 {
				k.op("VMAXPS", x+u, top+u, top+u)
				k.storeTo(x+u, u*64, "SI")
			}
			k.I("ADDQ $128, SI")
		})
		k.Label(known)

		k.Comment("Rescale the earlier sums where a maximum rises.")
		same, ready := k.NewLabel("same"), k.NewLabel("ready")
		k.Arg("m", "R9")
		k.I("ADDQ %s, R9", piece(pieceStat))
		k.Arg("l", "R10")
		k.I("ADDQ %s, R10", piece(pieceStat))
		for u := range 2 {
			k.op("VMAXPS", top+2+u, top+u, top+u)
			k.op("VMULPS", scaleReg, top+u, top+u)
			k.loadTo(x+u, u*64, "R9")
			k.loadTo(sum+u, u*64, "R10")
			k.I("VCMPPS $0x1e, %s, %s, K%d", k.v(x+u), k.v(top+u), 1+u) // greater
		}
		k.I("KORTESTW K1, K2")
		k.I("JEQ %s", same)
		k.Arg("o", "DI")
		k.I("ADDQ %s, DI", piece(pieceO))
		for u := range 2 {
			k.op("VMAXPS", x+u, top+u, top+u)
			k.storeTo(top+u, u*64, "R9")
			k.op("VSUBPS", top+u, x+u, x+u)
			k.power(x+u, temp, temp+1, 6)
			k.op("VMULPS", x+u, sum+u, sum+u)
		}
		k.I("CMPQ %s, $0", piece(pieceFresh))
		k.I("JNE %s", ready)
		k.Arg("blocks", "CX")
		k.I("SHLQ $3, CX")
		k.repeat("CX", func() {
			for i := range 4 {
				k.I("VMULPS %d(DI), %s, %s", 64*i, k.v(x+i%2), k.v(temp+i))
				k.storeTo(temp+i, 64*i, "DI")
			}
			k.I("ADDQ $256, DI")
		})
		k.I("JMP %s", ready)
		k.Label(same)
		for u := range 2 {
			k.op("VMOVAPS", x+u, top+u)
		}
		k.Label(ready)

		k.Comment("Probabilities, summed and then rounded: pairs of keys replace the first of each.")
		k.Arg("s", "SI")
		k.I("MOVQ SI, DI")
		k.I("MOVQ %s, CX", piece(pieceRows))
		k.I("SHRQ $1, CX")
		k.repeat("CX", func() {
			for i := range 4 {
				k.loadTo(x+i, 64*i, "SI")
				k.op("VFMSUB213PS", top+i%2, scaleReg, x+i)
				k.power(x+i, temp+2*i, temp+2*i+1, 6)
				k.op("VADDPS", x+i, sum+i%2, sum+i%2)
			}
			for u := range 2 {
				k.round(x+u, x+2+u)
				k.down(x+u, x+2+u)
				k.storeTo(x+u, 64*u, "DI")
			}
			k.I("ADDQ $256, SI")
			k.I("ADDQ $128, DI")
		})
		for u := range 2 {
			k.storeTo(sum+u, u*64, "R10")
		}

		k.Comment("Outputs [E, 32] += Vᵀ · P.")
		k.Arg("o", "DI")
		k.I("ADDQ %s, DI", piece(pieceO))
		k.I("MOVQ %s, SI", piece(pieceLo))
		k.I("SHLQ $1, SI")
		k.I("ADDQ %s, SI", k.ArgRef("v"))
		k.Arg("s", "BX")
		k.Arg("blocks", "CX")
		k.I("MOVQ %s, DX", piece(pieceRows))
		k.I("SHRQ $5, DX")
		k.product("R8", "R8", "$2048", "R8", "DX", piece(pieceFresh))
	})
	k.end()
}

// hide loads a row of scores, at a byte offset from SI, and replaces those without a bit at BX by −Inf. It advances
// BX.
func (k *kernel) hide(x, at int) {
	for u := range 2 {
		k.I("KMOVW %d(BX), K%d", 2*u, 1+u)
		k.op("VMOVAPS", infReg, x+u)
		k.I("VMOVUPS %d(SI), K%d, %s", at+64*u, 1+u, k.v(x+u))
	}
	k.I("ADDQ $4, BX")
}

// The fields of a piece of the backward pass, as byte offsets: two panels and two halves of a tile.
const (
	unitQ     = 0
	unitDO    = 8
	unitDQ    = 16
	unitStat  = 24
	unitLo    = 32 // 32 bytes per panel
	unitRows  = 40
	unitSeen  = 48
	unitFresh = 56
	unitFrom  = 96 // 16 bytes per half
	unitCount = 104
	unitSize  = 128
)

// order is the register that holds upperHalves in the backward pass.
const order = 27

// descend writes the backward pass.
func (s *set) descend(f *asmgen.File) {
	k := s.kernel(f, "descend", "is kernels.descend; ld and led are in bytes of FP32, columns counts 32 elements; "+
		"covered has a bit for each half of the keys that any panel sees; scale is the bits of a float32; "+
		"n and units are the number of pieces, which is positive.",
		"k, kt, v, q, qd, do, dod, dk, dv, dq, lse, delta, s, dp, p, ds, dsd *float32, ld, led int, "+
			"pieces *unitPiece, n, units, covered, steps, columns, scale int")
	k.begin(rough, 4)
	k.I("VMOVUPS ·upperHalves(SB), %s", k.v(order))
	k.eachPiece(unitSize, func() {
		for panel := range 2 {
			k.gradients(panel)
		}
		for panel := range 2 {
			k.queryGradients(panel)
		}
	})
	for half := range 2 {
		k.keyGradients(half)
	}
	k.end()
}

// panelField returns the operand of a panel's field, halfField that of a field of half a tile.
func panelField(field, panel int) string { return piece(field + 32*panel) }
func halfField(field, half int) string   { return piece(field + 16*half) }

// unless jumps to a label if a field is 0.
func (k *kernel) unless(field, label string) {
	k.I("CMPQ %s, $0", field)
	k.I("JEQ %s", label)
}

// operand sets BX to a parameter plus a piece's offset plus panel times rows rows of a stride.
func (k *kernel) operand(name, stride string, offset, panel, rows int) {
	k.I("MOVQ %s, BX", piece(offset))
	k.I("ADDQ %s, BX", k.ArgRef(name))
	if panel > 0 {
		k.I("MOVQ %s, AX", k.ArgRef(stride))
		k.I("IMULQ $%d, AX", panel*rows)
		k.I("ADDQ AX, BX")
	}
}

// gradients writes the probabilities and gradients of scores of a panel.
func (k *kernel) gradients(panel int) {
	const x, y, temp, lse, delta = 0, 4, 8, 16, 18
	none := k.NewLabel("none")
	k.unless(panelField(unitRows, panel), none)
	k.Comment("Panel %d: scores [rows, 32] = K · Qᵀ and gradients of probabilities = V · dOᵀ.", panel)
	for _, c := range []struct {
		c, a, b, stride, steps string
		offset                 int
	}{{"s", "k", "q", "led", "steps", unitQ}, {"dp", "v", "do", "ld", "columns", unitDO}} {
		k.Arg(c.c, "DI")
		k.Arg(c.stride, "R9")
		k.I("SHRQ $1, R9")
		k.I("MOVQ %s, SI", panelField(unitLo, panel))
		k.I("IMULQ R9, SI")
		k.I("ADDQ %s, SI", k.ArgRef(c.a))
		k.operand(c.b, c.stride, c.offset, panel, 16)
		k.I("MOVQ R9, R10")
		k.I("SHLQ $4, R10")
		k.I("MOVQ %s, CX", panelField(unitRows, panel))
		k.I("SHRQ $4, CX")
		k.product("R8", "R9", "R10", "R8", k.ArgRef(c.steps), "")
	}

	k.Comment("Probabilities and gradients of scores, two keys at a time.")
	k.Arg("s", "SI")
	k.Arg("dp", "DI")
	k.I("MOVQ %s, R13", panelField(unitLo, panel))
	k.I("SHLQ $7, R13")
	k.I("LEAQ %d(R13), R10", 64*panel)
	k.I("MOVQ R10, R11")
	k.I("MOVQ R12, AX") // per piece 128 bytes, and 8192 for its probabilities
	k.I("SUBQ %s, AX", k.ArgRef("pieces"))
	k.I("SHLQ $6, AX")
	k.I("ADDQ AX, R10")
	k.I("ADDQ AX, R11")
	k.I("ADDQ %s, R10", k.ArgRef("p"))
	k.I("ADDQ %s, R11", k.ArgRef("ds"))
	k.I("SHRQ $1, R13")
	k.I("ADDQ %s, R13", k.ArgRef("dsd"))
	k.I("ADDQ $%d, R13", 4096*panel)
	for _, c := range []struct {
		name string
		reg  int
	}{{"lse", lse}, {"delta", delta}} {
		k.Arg(c.name, "AX")
		k.I("ADDQ %s, AX", piece(unitStat))
		for u := range 2 {
			k.loadTo(c.reg+u, 128*panel+64*u, "AX")
		}
	}
	k.I("MOVQ %s, CX", panelField(unitRows, panel))
	k.I("SHRQ $1, CX")
	pair := func() {
		for i := range 4 {
			k.op("VFMSUB213PS", lse+i%2, scaleReg, x+i)
			k.power(x+i, temp+2*i, temp+2*i+1, 4)
			k.loadTo(y+i, 64*i, "DI")
			k.op("VSUBPS", delta+i%2, y+i, y+i)
			k.op("VMULPS", x+i, y+i, y+i)
		}
		k.round(x, x+1, x+2, x+3, y, y+1, y+2, y+3)
		for row := range 2 {
			k.op("VPERMT2W", x+2*row+1, order, x+2*row)
			k.storeTo(x+2*row, 128*row, "R10")
			k.op("VMOVAPS", y+2*row, temp+row)
			k.op("VPERMT2W", y+2*row+1, order, temp+row)
			k.storeTo(temp+row, 128*row, "R11")
		}
		for u := range 2 {
			k.down(y+u, y+2+u)
			k.storeTo(y+u, 64*u, "R13")
		}
		k.I("ADDQ $256, SI")
		k.I("ADDQ $256, DI")
		k.I("ADDQ $256, R10")
		k.I("ADDQ $256, R11")
		k.I("ADDQ $128, R13")
	}
	seen := k.NewLabel("seen")
	k.I("MOVQ %s, BX", panelField(unitSeen, panel))
	k.I("TESTQ BX, BX")
	k.I("JNE %s", seen)
	k.repeat("CX", func() {
		for i := range 4 {
			k.loadTo(x+i, 64*i, "SI")
		}
		pair()
	})
	k.I("JMP %s", none)
	k.Label(seen)
	k.repeat("CX", func() {
		k.hide(x, 0)
		k.hide(x+2, 128)
		pair()
	})
	k.Label(none)
}

// keyGradients adds the products of all panels that see half of the tile's keys: dV += P · dO, dK += dS · Q, 32 × 32
// sums at a time that stay in tiles from piece to piece.
func (k *kernel) keyGradients(half int) {
	none, column := k.NewLabel("none"), k.NewLabel("column")
	k.I("TESTQ $%d, %s", 1<<half, k.ArgRef("covered"))
	k.I("JEQ %s", none)
	k.Comment("Keys %d to %d: dV += P · dO and dK += dS · Q.", 32*half, 32*half+31)
	k.I("XORQ DX, DX")
	k.Label(column)
	for _, c := range []struct {
		c, a, b, stride string
		offset          int
	}{{"dv", "p", "dod", "ld", unitDO}, {"dk", "ds", "qd", "led", unitQ}} {
		next := k.NewLabel("next")
		k.Arg(c.stride, "R9")
		k.Arg("ld", "R10")
		k.I("IMUL3Q $%d, R10, DI", 32*half)
		k.I("ADDQ %s, DI", k.ArgRef(c.c))
		k.I("ADDQ DX, DI")
		k.corners(k.TILELOADD)
		k.Arg(c.a, "R11")
		k.I("ADDQ $%d, R11", half*32*128)
		k.Arg("pieces", "R12")
		k.Arg("units", "CX")
		k.repeat("CX", func() {
			k.I("MOVQ %s, AX", halfField(unitCount, half))
			k.I("TESTQ AX, AX")
			k.I("JEQ %s", next)
			k.I("MOVQ %s, SI", halfField(unitFrom, half))
			k.I("MOVQ SI, BX")
			k.I("SHLQ $6, SI")
			k.I("ADDQ R11, SI")
			k.I("SHLQ $4, BX")
			k.I("IMULQ R9, BX")
			k.I("ADDQ %s, BX", piece(c.offset))
			k.I("ADDQ %s, BX", k.ArgRef(c.b))
			k.I("ADDQ DX, BX")
			k.repeat("AX", func() {
				k.TILELOADD(0, "SI", "R8", 4)
				k.TILELOADD(0, "BX", "R9", 6)
				k.TDPBF16PS(6, 4, 0)
				k.TILELOADD(64, "BX", "R9", 7)
				k.TDPBF16PS(7, 4, 1)
				k.TILELOADD(2048, "SI", "R8", 5)
				k.TDPBF16PS(6, 5, 2)
				k.TDPBF16PS(7, 5, 3)
				k.I("ADDQ $64, SI")
				k.advance("BX", "R9")
			})
			k.Label(next)
			k.I("ADDQ $8192, R11")
			k.I("ADDQ $%d, R12", unitSize)
		})
		k.corners(func(disp int, base, stride string, t int) { k.TILESTORED(t, disp, base, stride) })
	}
	k.I("ADDQ $128, DX")
	k.I("MOVQ DX, AX")
	k.I("SHRQ $7, AX")
	k.I("CMPQ AX, %s", k.ArgRef("columns"))
	k.I("JLT %s", column)
	k.Label(none)
}

// corners moves T0 to T3, the 32 × 32 sums at DI with a stride of R10.
func (k *kernel) corners(move func(disp int, base, stride string, t int)) {
	move(0, "DI", "R10", 0)
	move(64, "DI", "R10", 1)
	k.I("MOVQ DI, R13")
	k.advance("R13", "R10")
	move(0, "R13", "R10", 2)
	move(64, "R13", "R10", 3)
}

// queryGradients adds to a panel's dQᵀ [E, 32] += Kᵀ · dS.
func (k *kernel) queryGradients(panel int) {
	none := k.NewLabel("none")
	k.unless(panelField(unitRows, panel), none)
	k.Comment("Panel %d: dQᵀ [E, 32] += Kᵀ · dS.", panel)
	k.operand("dq", "ld", unitDQ, panel, 32)
	k.I("MOVQ BX, DI")
	k.I("MOVQ %s, SI", panelField(unitLo, panel))
	k.I("MOVQ SI, BX")
	k.I("SHLQ $1, SI")
	k.I("ADDQ %s, SI", k.ArgRef("kt"))
	k.I("SHLQ $6, BX")
	k.I("ADDQ %s, BX", k.ArgRef("dsd"))
	k.I("ADDQ $%d, BX", 4096*panel)
	k.Arg("columns", "CX")
	k.I("SHLQ $1, CX")
	k.I("MOVQ %s, DX", panelField(unitRows, panel))
	k.I("SHRQ $5, DX")
	k.product("R8", "R8", "$2048", "R8", "DX", panelField(unitFresh, panel))
	k.Label(none)
}

// lower writes the kernel that transposes sums back, scales and rounds them.
func (s *set) lower(f *asmgen.File) {
	k := s.kernel(f, "lower",
		"is kernels.lower; stride is in bytes, groups counts 32 elements; all 32 queries are written.",
		"dst *uint16, stride int, src, f *float32, groups int")
	const factor, pairs, t = 31, 30, 29
	k.Arg("stride", "R9")
	k.I("LEAQ (R9)(R9*2), R10")
	for half := range 2 {
		group := k.NewLabel("group")
		k.Arg("dst", "DI")
		k.I("MOVQ R9, AX")
		k.I("SHLQ $%d, AX", 4)
		k.I("IMULQ $%d, AX", half)
		k.I("ADDQ AX, DI")
		k.Arg("src", "SI")
		k.Arg("f", "AX")
		k.Arg("groups", "CX")
		k.Label(group)
		k.I("VMOVUPS ·zipRows(SB), %s", k.v(pairs))
		k.loadTo(factor, 64*half, "AX")
		for i := range 16 {
			k.I("VMULPS %d(SI), %s, %s", 256*i+64*half, k.v(factor), k.v(i))
			k.I("VMULPS %d(SI), %s, %s", 256*i+128+64*half, k.v(factor), k.v(t))
			k.VCVTNE2PS2BF16(i, t, i)
			k.I("VPERMW %s, %s, %[1]s", k.v(i), k.v(pairs))
		}
		for i, base := range []string{"DI", "R11", "R12", "R13"} {
			if i > 0 {
				k.I("LEAQ (%s)(R9*4), %s", []string{"DI", "R11", "R12"}[i-1], base)
			}
		}
		k.turned(func(c, r int) {
			offset := []string{"", "(R9*1)", "(R9*2)", "(R10*1)"}[c%4]
			k.I("VMOVUPS %s, (%s)%s", k.v(r), []string{"DI", "R11", "R12", "R13"}[c/4], offset)
		})
		k.I("ADDQ $64, DI")
		k.I("ADDQ $4096, SI")
		k.I("DECQ CX")
		k.I("JNZ %s", group)
	}
	k.Ret()
}
