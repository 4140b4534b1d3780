// Gen writes the assembly kernels of fasttext.
package main

import (
	"fmt"
	"log"

	"anneal/internal/asmgen"
)

func main() {
	f := &asmgen.File{Package: "fasttext", Generator: "gen/main.go"}
	for _, t := range []tier{{"AVX2", "Y", 8}, {"AVX512", "Z", 16}} {
		addRows(f, t)
		addToRows(f, t)
	}
	for _, f := range []*asmgen.File{f, neon()} {
		if err := f.Write("kernels"); err != nil {
			log.Fatal(err)
		}
	}
}

// registers is the largest number of registers in a block of columns.
const registers = 8

// ahead is the prefetch distance in rows.
const ahead = 8

// tier is an instruction set; its registers hold lanes numbers. The last register of a block may be partly used, as
// given by a bit mask in K1 or a lane mask in Y15.
type tier struct {
	name, reg string
	lanes     int
}

func (t tier) masks() string {
	if t.lanes == 16 {
		return "mask int"
	}
	return "mask *int32"
}

func (t tier) loadMask(fn *asmgen.Func) {
	fn.Arg("mask", "AX")
	if t.lanes == 16 {
		fn.I("KMOVW AX, K1")
	} else {
		fn.I("VMOVDQU (AX), Y15")
	}
}

func (t tier) load(fn *asmgen.Func, from string, to int, last bool) {
	switch {
	case !last:
		fn.I("VMOVUPS %s, %s%d", from, t.reg, to)
	case t.lanes == 16:
		fn.I("VMOVUPS.Z %s, K1, Z%d", from, to)
	default:
		fn.I("VMASKMOVPS %s, Y15, Y%d", from, to)
	}
}

func (t tier) store(fn *asmgen.Func, from int, to string, last bool) {
	switch {
	case !last:
		fn.I("VMOVUPS %s%d, %s", t.reg, from, to)
	case t.lanes == 16:
		fn.I("VMOVUPS Z%d, K1, %s", from, to)
	default:
		fn.I("VMASKMOVPS Y%d, Y15, %s", from, to)
	}
}

// rows writes a loop over rows for each number of registers that a block can use. The function do handles one
// register of a row.
func (t tier) rows(fn *asmgen.Func, before, after func(j int, last bool), do func(row string, j int, last bool)) {
	fn.Arg("matrix", "DI")
	fn.Arg("rows", "SI")
	fn.Arg("n", "CX")
	fn.Arg("columns", "DX")
	t.loadMask(fn)
	fn.Arg("used", "R10")
	fn.Arg("x", "R11")
	fn.I("SHLQ $2, DX // bytes of a row")
	fn.I("LEAQ -1(CX), R9")
	fn.I("XORQ BX, BX")
	for used := 1; used < registers; used++ {
		fn.I("CMPQ R10, $%d", used)
		fn.I("JEQ use%d", used)
	}
	for used := registers; used >= 1; used-- {
		fn.Label(fmt.Sprintf("use%d", used))
		for j := range used {
			before(j, j == used-1)
		}
		loop := fn.NewLabel("loop")
		fn.Label(loop)
		fn.I("LEAQ %d(BX), R8", ahead)
		fn.I("CMPQ R8, R9")
		fn.I("CMOVQGT R9, R8")
		fn.I("MOVLQSX (SI)(R8*4), R8")
		fn.I("IMULQ DX, R8")
		for b := 0; b < used*t.lanes*4; b += 64 {
			fn.I("PREFETCHT0 %d(DI)(R8*1)", b)
		}
		fn.I("MOVLQSX (SI)(BX*4), AX")
		fn.I("IMULQ DX, AX")
		fn.I("ADDQ DI, AX")
		for j := range used {
			do("AX", j, j == used-1)
		}
		fn.I("INCQ BX")
		fn.I("CMPQ BX, CX")
		fn.I("JLT %s", loop)
		for j := range used {
			after(j, j == used-1)
		}
		fn.Ret()
	}
}

func (t tier) at(base string, j int) string { return fmt.Sprintf("%d(%s)", 4*t.lanes*j, base) }

func addRows(f *asmgen.File, t tier) {
	fn := f.Func("addRows"+t.name, "does what addRowsGeneric does for the columns of a block.", t.params())
	t.rows(fn, func(j int, last bool) { t.load(fn, t.at("R11", j), j, last) },
		func(j int, last bool) { t.store(fn, j, t.at("R11", j), last) },
		func(row string, j int, last bool) {
			if last {
				t.load(fn, t.at(row, j), 8, last)
				fn.I("VADDPS %s8, %s%d, %s%d", t.reg, t.reg, j, t.reg, j)
			} else {
				fn.I("VADDPS %s, %s%d, %s%d", t.at(row, j), t.reg, j, t.reg, j)
			}
		})
}

func addToRows(f *asmgen.File, t tier) {
	fn := f.Func("addToRows"+t.name, "does what addToRowsGeneric does for the columns of a block.", t.params())
	t.rows(fn, func(j int, last bool) { t.load(fn, t.at("R11", j), j, last) }, func(int, bool) {},
		func(row string, j int, last bool) {
			t.load(fn, t.at(row, j), 8, last)
			fn.I("VADDPS %s%d, %s8, %s8", t.reg, j, t.reg, t.reg)
			t.store(fn, 8, t.at(row, j), last)
		})
}

func (t tier) params() string {
	return "x *float32, matrix *float32, rows *int32, n int, columns int, used int, " + t.masks()
}
