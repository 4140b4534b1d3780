package main

import (
	"fmt"
	"math/bits"

	"anneal/internal/asmgen"
)

// inputs locates the inputs of a kernel: its parameters or, in a column, the fields of the visit at SI, which also
// counts the bytes done. AX points to the memory that is prefetched with the current tile.
type inputs struct {
	*asmgen.Func
	vector
	visit bool
	tile  string // label of the next tile
}

const tileCols = 32 // gemm.colStep

func kernelParams(v vector, cols int) string {
	if cols == tileCols {
		return "v *visit"
	}
	return fmt.Sprintf("to *%[1]s, ld int, c, a *%[1]s, lda int, b *%[1]s, k, add int, next, later uintptr, "+
		"step, stride int", v.elem)
}

// A field of a visit with the offsets of two related fields: the bytes done, and the bytes from a tile to the one
// below it.
type field struct{ offset, done, below int }

const visitAhead, visitTiles, doneAhead, aheadSize = 128, 88, 120, 32

// fields are those of gemm.visit, and of gemm.ahead relative to AX.
var fields = map[string]field{
	"to": {0, 96, 16}, "c": {24, 104, 32}, "a": {40, 112, 56},
	"ld": {offset: 8}, "lda": {offset: 48}, "b": {offset: 64}, "k": {offset: 72}, "add": {offset: 80},
	"next": {offset: 0}, "step": {offset: 8}, "later": {offset: 16}, "stride": {offset: 24},
}

// newInputs begins a kernel, and a tile of a column.
func newInputs(fn *asmgen.Func, v vector, cols int) *inputs {
	in := &inputs{fn, v, cols == tileCols, fn.NewLabel("tile")}
	if !in.visit {
		return in
	}
	in.Arg("v", "SI")
	for _, name := range []string{"to", "c", "a"} {
		in.I("MOVQ $0, %d(SI)", fields[name].done)
	}
	in.I("MOVQ $0, %d(SI)", doneAhead)
	in.Label(in.tile)
	in.I("LEAQ %d(SI), AX", visitAhead)
	in.I("ADDQ %d(SI), AX", doneAhead)
	return in
}

// operand returns the operand of an input that does not depend on the tile.
func (in *inputs) operand(name string) string {
	switch name {
	case "next", "step", "later", "stride":
		if in.visit {
			return fmt.Sprintf("%d(AX)", fields[name].offset)
		}
	}
	if in.visit {
		return fmt.Sprintf("%d(SI)", fields[name].offset)
	}
	return in.ArgRef(name)
}

// load loads an input; distances become bytes.
func (in *inputs) load(name, reg string) {
	in.I("MOVQ %s, %s", in.operand(name), reg)
	switch {
	case in.visit && fields[name].done > 0:
		in.I("ADDQ %d(SI), %s", fields[name].done, reg)
	case !in.visit && (name == "ld" || name == "lda"):
		in.I("SHLQ $%d, %s", bits.Len(uint(in.size))-1, reg)
	}
}

// next continues with the tile below, if there is one. BX is overwritten.
func (in *inputs) next() {
	if !in.visit {
		return
	}
	for _, name := range []string{"to", "c", "a"} {
		in.I("MOVQ %d(SI), BX", fields[name].below)
		in.I("ADDQ BX, %d(SI)", fields[name].done)
	}
	in.I("MOVQ %d(SI), BX", visitTiles)
	in.I("SHLQ $%d, BX", bits.Len(aheadSize)-1)
	in.I("ADDQ $%d, %d(SI)", aheadSize, doneAhead)
	in.I("CMPQ BX, %d(SI)", doneAhead)
	in.I("JGT %s", in.tile)
}
