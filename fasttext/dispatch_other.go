//go:build !amd64 && !arm64

package fasttext

func addRows(acc, matrix []float32, rows []int32) { addRowsGeneric(acc, matrix, rows) }

func addToRows(matrix, x []float32, rows []int32) { addToRowsGeneric(matrix, x, rows) }
