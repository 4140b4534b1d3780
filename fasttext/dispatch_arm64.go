package fasttext

import "anneal/internal/isa"

// useNEON selects the kernels of NEON. They take whole registers of columns; the others are left to portable Go.
var useNEON = isa.Enables(isa.NEON)

const (
	callMost  = 512 // rows per call into assembly, so that no call takes longer than about 50 µs
	registers = 8   // registers per block of columns
	lanes     = 4
)

func addRows(acc, matrix []float32, rows []int32) {
	if !useNEON {
		addRowsGeneric(acc, matrix, rows)
		return
	}
	whole := blocks(len(acc), rows, func(column, used int, rows []int32) {
		addRowsNEON(&acc[column], &matrix[column], &rows[0], len(rows), len(acc), used)
	})
	if whole == len(acc) {
		return
	}
	for _, r := range rows {
		for i, x := range matrix[int(r)*len(acc):][whole:len(acc)] {
			acc[whole+i] += x
		}
	}
}

func addToRows(matrix, x []float32, rows []int32) {
	if !useNEON {
		addToRowsGeneric(matrix, x, rows)
		return
	}
	whole := blocks(len(x), rows, func(column, used int, rows []int32) {
		addToRowsNEON(&x[column], &matrix[column], &rows[0], len(rows), len(x), used)
	})
	if whole == len(x) {
		return
	}
	for _, r := range rows {
		row := matrix[int(r)*len(x):][whole:len(x)]
		for i, v := range x[whole:] {
			row[i] += v
		}
	}
}

// blocks calls do for each block of columns, of so many registers, and each run of rows. It returns the columns of all
// blocks.
func blocks(columns int, rows []int32, do func(column, used int, rows []int32)) int {
	whole := columns / lanes * lanes
	for len(rows) > 0 {
		n := min(len(rows), callMost)
		for column := 0; column < whole; {
			used := min(registers, (whole-column)/lanes)
			do(column, used, rows[:n])
			column += used * lanes
		}
		rows = rows[n:]
	}
	return whole
}
