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
	visit              bool
	part               *parts // of a tile, or nil
	across, tile, down string // labels of the next columns, the next tile and the next rows
}

// parts divide the tiles of a visit into register tiles of height rows and width bytes of columns. All tiles of the
// visit get their first columns, then the next ones, whose panel of b is beside the first.
type parts struct{ rows, height, width int }

const tileCols = 32 // gemm.colStep

func kernelParams(v vector, visit bool) string {
	if visit {
		return "v *visit"
	}
	return fmt.Sprintf("to *%[1]s, ld int, c, a *%[1]s, lda int, b *%[1]s, k, add int, next, later uintptr, "+
		"step, stride int", v.elem)
}

// A field of a visit with the offsets of two related fields: the bytes done, and the bytes from a tile to the one
// below it.
type field struct{ offset, done, below int }

const (
	visitAhead, visitTiles, doneAhead, aheadSize = 128, 88, 120, 32

	visitBeside, acrossTo, acrossB, downTo, downC, downA = 512, 520, 528, 536, 544, 552
)

// fields are those of gemm.visit, and of gemm.ahead relative to AX.
var fields = map[string]field{
	"to": {0, 96, 16}, "c": {24, 104, 32}, "a": {40, 112, 56},
	"ld": {offset: 8}, "lda": {offset: 48}, "b": {offset: 64}, "k": {offset: 72}, "add": {offset: 80},
	"next": {offset: 0}, "step": {offset: 8}, "later": {offset: 16}, "stride": {offset: 24},
}

// newInputs begins a kernel, and a tile of a column.
func newInputs(fn *asmgen.Func, v vector, visit bool, p *parts) *inputs {
	in := &inputs{fn, v, visit, p, fn.NewLabel("across"), fn.NewLabel("tile"), fn.NewLabel("down")}
	if !visit {
		return in
	}
	in.Arg("v", "SI")
	if p != nil {
		in.zero(acrossTo, acrossB)
		in.Label(in.across)
	}
	for _, name := range []string{"to", "c", "a"} {
		in.zero(fields[name].done)
	}
	in.zero(doneAhead)
	in.Label(in.tile)
	if p != nil {
		in.zero(downTo, downC, downA)
		in.Label(in.down)
	}
	in.I("LEAQ %d(SI), AX", visitAhead)
	in.I("ADDQ %d(SI), AX", doneAhead)
	return in
}

// zero clears fields of the visit.
func (in *inputs) zero(offsets ...int) {
	for _, at := range offsets {
		in.I("MOVQ $0, %d(SI)", at)
	}
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

// ofPart are the distances from a tile to the current part of it.
var ofPart = map[string][]int{"to": {acrossTo, downTo}, "c": {acrossTo, downC}, "a": {downA}, "b": {acrossB}}

// load loads an input; distances become bytes.
func (in *inputs) load(name, reg string) {
	in.I("MOVQ %s, %s", in.operand(name), reg)
	if !in.visit {
		if name == "ld" || name == "lda" {
			in.I("SHLQ $%d, %s", bits.Len(uint(in.size))-1, reg)
		}
		return
	}
	if fields[name].done > 0 {
		in.I("ADDQ %d(SI), %s", fields[name].done, reg)
	}
	if in.part != nil {
		for _, at := range ofPart[name] {
			in.I("ADDQ %d(SI), %s", at, reg)
		}
	}
}

// next continues with the rows below, the tile below, or the columns beside, if there are any. BX is overwritten.
func (in *inputs) next(form string) {
	if !in.visit {
		return
	}
	if p := in.part; p != nil && p.height < p.rows {
		in.I("IMUL3Q $%d, %d(SI), BX", p.height, fields["ld"].offset)
		in.I("ADDQ BX, %d(SI)", downTo)
		if form == byRows {
			in.I("IMUL3Q $%d, %d(SI), BX", p.height, fields["lda"].offset)
			in.I("ADDQ BX, %d(SI)", downA)
		} else {
			in.I("ADDQ $%d, %d(SI)", p.height*in.size, downA)
		}
		in.I("ADDQ $%d, %d(SI)", p.height*tileCols*in.size, downC)
		in.I("CMPQ %d(SI), $%d", downC, p.rows*tileCols*in.size)
		in.I("JLT %s", in.down)
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
	if p := in.part; p != nil {
		in.I("MOVQ %d(SI), BX", visitBeside)
		in.I("ADDQ BX, %d(SI)", acrossB)
		in.I("ADDQ $%d, %d(SI)", p.width, acrossTo)
		in.I("CMPQ %d(SI), $%d", acrossTo, tileCols*in.size)
		in.I("JLT %s", in.across)
	}
}
