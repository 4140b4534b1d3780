package tensor

import (
	"fmt"
	"unsafe"

	"anneal/internal/floats"
)

// Blocked formats hold a matrix of weights [O, I] in the order in which products of few rows read it: in blocks of
// Side rows by Side columns. Blocks of the same rows follow each other; within a block, the rows of a column are
// adjacent. I must be a multiple of Side; O is padded to one with rows of zeros.
//
// BlockedF32 and BlockedBF16 hold F32 and BF16 numbers. BlockedPairs also holds BF16, for kernels that multiply pairs:
// in every row, the numbers of columns 2p and 2p+1 are adjacent. Q8 has 8 bits per weight: every 32 weights of a row
// share a scale in F16, and each weight is a signed byte times that scale, as in GGUF's Q8_0. A block has the scales
// of its rows before the codes, 1.0625 bytes per weight.

// Side is the side of a block of a blocked format.
const Side = floats.Q8Block

// q8Scales is the bytes of the scales of a block of Q8.
const q8Scales = 2 * Side

// Blocked reports whether d is a blocked format.
func (d DType) Blocked() bool {
	return d == Q8 || d == BlockedBF16 || d == BlockedF32 || d == BlockedPairs
}

// FitsBlocks reports whether a matrix of rows of n weights can be held in a blocked format.
func FitsBlocks(n int) bool { return n > 0 && n%Side == 0 }

// blockBytes returns the bytes of a block.
func (d DType) blockBytes() int {
	n := Side * Side * d.Size()
	if d == Q8 {
		n += q8Scales
	}
	return n
}

// blockedBytes returns the bytes of a matrix.
func (d DType) blockedBytes(rows, cols int) int {
	return (rows + Side - 1) / Side * (cols / Side) * d.blockBytes()
}

// Block returns the block that holds row i and column j of a matrix in a blocked format, with memory data and cols
// columns.
func (d DType) Block(data unsafe.Pointer, cols, i, j int) unsafe.Pointer {
	return unsafe.Add(data, (i/Side*(cols/Side)+j/Side)*d.blockBytes())
}

// InBlock returns the value of row i and column j of a matrix, given their block.
func (d DType) InBlock(block unsafe.Pointer, i, j int) float32 {
	i, j = i%Side, j%Side
	at := unsafe.Add(block, (j*Side+i)*d.Size())
	switch d {
	case BlockedPairs:
		return (*[Side / 2][Side][2]BFloat16)(block)[j/2][i][j%2].Float32()
	case BlockedF32:
		return *(*float32)(at)
	case BlockedBF16:
		return (*(*BFloat16)(at)).Float32()
	}
	scale := *(*Float16)(unsafe.Add(block, 2*i))
	return scale.Float32() * float32(*(*int8)(unsafe.Add(at, q8Scales)))
}

// ToBlocks copies the matrix src [O, I] (F32, BF16 or F16) to dst in a blocked format. It rounds to nearest, ties to
// even, and for Q8 like floats.ToQ8.
func ToBlocks(dst, src *Tensor) {
	rows, cols, d := src.Rows(), src.Cols(), dst.dtype
	if !d.Blocked() || dst.Rows() != rows || dst.Cols() != cols || !FitsBlocks(cols) {
		panic(fmt.Sprintf("tensor: %v is not copied to blocks of %v", src, dst))
	}
	if rows%Side > 0 {
		clear(dst.Raw()[d.blockedBytes(rows/Side*Side, cols):])
	}
	var values [Side]float32
	for i := range rows {
		for j := 0; j < cols; j += Side {
			src.widen(values[:], i*cols+j)
			d.setInBlock(d.Block(dst.data, cols, i, j), i%Side, &values)
		}
	}
}

// setInBlock sets row i of a block.
func (d DType) setInBlock(block unsafe.Pointer, i int, values *[Side]float32) {
	switch d {
	case BlockedF32:
		to := (*[Side][Side]float32)(block)
		for j, v := range values {
			to[j][i] = v
		}
	case BlockedBF16:
		to := (*[Side][Side]BFloat16)(block)
		for j, v := range values {
			to[j][i] = BF16FromFloat32(v)
		}
	case BlockedPairs:
		to := (*[Side / 2][Side][2]BFloat16)(block)
		for j, v := range values {
			to[j/2][i][j%2] = BF16FromFloat32(v)
		}
	default:
		var codes [Side]int8
		(*[Side]uint16)(block)[i] = floats.ToQ8(&codes, values)
		to := (*[Side][Side]int8)(unsafe.Add(block, q8Scales))
		for j, code := range codes {
			to[j][i] = code
		}
	}
}

// widen sets values to the elements of t from at on.
func (t *Tensor) widen(values []float32, at int) {
	switch t.dtype {
	case F32:
		copy(values, t.F32()[at:])
	case BF16:
		for i, v := range t.BF16()[at:][:len(values)] {
			values[i] = v.Float32()
		}
	default:
		for i := range values {
			values[i] = float32(t.Float64(at + i))
		}
	}
}
