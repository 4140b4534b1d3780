package fasttext

//go:generate go run ./gen

// addRowsGeneric adds rows of a matrix to acc, one after the other. The matrix has len(acc) columns.
func addRowsGeneric(acc, matrix []float32, rows []int32) {
	for _, r := range rows {
		row := matrix[int(r)*len(acc):][:len(acc)]
		for i, x := range row {
			acc[i] += x
		}
	}
}

// addToRowsGeneric adds x to rows of a matrix, one after the other.
func addToRowsGeneric(matrix, x []float32, rows []int32) {
	for _, r := range rows {
		row := matrix[int(r)*len(x):][:len(x)]
		for i, v := range x {
			row[i] += v
		}
	}
}
