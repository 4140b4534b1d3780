package fasttext

import "anneal/internal/isa"

// The instruction sets in use.
var (
	useAVX2   = isa.Enables(isa.AVX2)
	useAVX512 = isa.Enables(isa.AVX512)
)

const (
	callMost  = 512 // rows per call into assembly, so that no call takes longer than about 50 µs
	registers = 8   // registers per block of columns
)

// lanesInUse holds masks for VMASKMOVPS: lanesInUse[8−n:] starts with n lanes of −1.
var lanesInUse = [16]int32{-1, -1, -1, -1, -1, -1, -1, -1}

func addRows(acc, matrix []float32, rows []int32) {
	if !useAVX2 {
		addRowsGeneric(acc, matrix, rows)
		return
	}
	for len(rows) > 0 {
		n := min(len(rows), callMost)
		for column := 0; column < len(acc); {
			width, used, tail := block(len(acc) - column)
			if useAVX512 {
				addRowsAVX512(&acc[column], &matrix[column], &rows[0], n, len(acc), used, 1<<tail-1)
			} else {
				addRowsAVX2(&acc[column], &matrix[column], &rows[0], n, len(acc), used, &lanesInUse[8-tail])
			}
			column += width
		}
		rows = rows[n:]
	}
}

func addToRows(matrix, x []float32, rows []int32) {
	if !useAVX2 {
		addToRowsGeneric(matrix, x, rows)
		return
	}
	for len(rows) > 0 {
		n := min(len(rows), callMost)
		for column := 0; column < len(x); {
			width, used, tail := block(len(x) - column)
			if useAVX512 {
				addToRowsAVX512(&x[column], &matrix[column], &rows[0], n, len(x), used, 1<<tail-1)
			} else {
				addToRowsAVX2(&x[column], &matrix[column], &rows[0], n, len(x), used, &lanesInUse[8-tail])
			}
			column += width
		}
		rows = rows[n:]
	}
}

// block returns how many of the remaining columns one call processes, in how many registers, and how many lanes of
// the last register are used.
func block(left int) (width, used, tail int) {
	lanes := 8
	if useAVX512 {
		lanes = 16
	}
	width = min(left, registers*lanes)
	used = (width + lanes - 1) / lanes
	return width, used, width - (used-1)*lanes
}
