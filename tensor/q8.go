package tensor

import (
	"fmt"
	"unsafe"

	"anneal/internal/floats"
)

// Q8 holds a matrix of weights [O, I] in 8 bits, 1.0625 bytes a weight: every 32 weights of a row share a scale in F16,
// and each is a signed byte times that scale. The numbers are those of GGUF's Q8_0. They lie as products read them: in
// blocks of Q8Block rows by Q8Block columns, those of the same rows one after the other; a block has the scales of its
// rows, and then the codes, all rows of a column next to each other. I is a multiple of Q8Block; rows are added to O
// until it is one, with codes of 0.

// Q8Block is the side of a block of Q8, and how many weights share a scale.
const Q8Block = floats.Q8Block

// q8Size is the bytes of a block.
const q8Size = 2*Q8Block + Q8Block*Q8Block

// FitsQ8 reports whether a matrix of rows of n weights can be held in Q8.
func FitsQ8(n int) bool { return n > 0 && n%Q8Block == 0 }

func q8Bytes(rows, cols int) int { return (rows + Q8Block - 1) / Q8Block * (cols / Q8Block) * q8Size }

// Q8At returns the block of Q8 memory of a matrix of cols columns in which row i and column j lie.
func Q8At(data unsafe.Pointer, cols, i, j int) unsafe.Pointer {
	return unsafe.Add(data, (i/Q8Block*(cols/Q8Block)+j/Q8Block)*q8Size)
}

// Q8Value returns the value of row i and column j of a matrix, given their block.
func Q8Value(block unsafe.Pointer, i, j int) float32 {
	i, j = i%Q8Block, j%Q8Block
	scale := *(*Float16)(unsafe.Add(block, 2*i))
	return scale.Float32() * float32(*(*int8)(unsafe.Add(block, 2*Q8Block+j*Q8Block+i)))
}

// RoundQ8 rounds the matrix src [O, I] (F32, BF16 or F16) to dst in Q8, as floats.ToQ8 does.
func RoundQ8(dst, src *Tensor) {
	rows, cols := src.Rows(), src.Cols()
	if dst.dtype != Q8 || dst.Rows() != rows || dst.Cols() != cols || !FitsQ8(cols) {
		panic(fmt.Sprintf("tensor: %v is not rounded to %v", src, dst))
	}
	clear(dst.Raw())
	var values [Q8Block]float32
	var codes [Q8Block]int8
	for i := range rows {
		for j := 0; j < cols; j += Q8Block {
			for q := range values {
				values[q] = float32(src.Float64(i*cols + j + q))
			}
			block := Q8At(dst.data, cols, i, j)
			*(*uint16)(unsafe.Add(block, 2*(i%Q8Block))) = floats.ToQ8(&codes, &values)
			for q, code := range codes {
				*(*int8)(unsafe.Add(block, 2*Q8Block+q*Q8Block+i%Q8Block)) = code
			}
		}
	}
}
