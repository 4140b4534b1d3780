//go:build cuda && linux

package cuda

import (
	"fmt"

	"anneal/tensor"
)

// A kernel's method checks the shapes and dtypes of its tensors before it launches anything, because kernels do not
// check them. A mismatch is a programming error and panics; user input is validated earlier.

// shape panics unless t, seen as [Rows, Cols], is [rows, cols].
func shape(op, name string, t *tensor.Tensor, rows, cols int) {
	if t.Rank() == 0 || t.Cols() != cols || t.Rows() != rows {
		panic(fmt.Sprintf("cuda: %s: %s is %v, want [%d %d]", op, name, t, rows, cols))
	}
}

// length panics unless t has n elements.
func length(op, name string, t *tensor.Tensor, n int) {
	if t.Len() != n {
		panic(fmt.Sprintf("cuda: %s: %s is %v, want %d elements", op, name, t, n))
	}
}

// ceilDiv returns a/b rounded up.
func ceilDiv(a, b int) int { return (a + b - 1) / b }

// dtype panics unless t has dtype want.
func dtype(op, name string, t *tensor.Tensor, want tensor.DType) {
	if t.DType() != want {
		panic(fmt.Sprintf("cuda: %s: %s is %v, want dtype %v", op, name, t, want))
	}
}

// arithmetic returns the dtype of sums over elements of t, and of all values that are never stored in 16 bits: F64 in
// the reference mode, else F32.
func arithmetic(t *tensor.Tensor) tensor.DType {
	if t.DType() == tensor.F64 {
		return tensor.F64
	}
	return tensor.F32
}

// storage panics unless t has a dtype of activations: F64 if arithmetic is F64 (the reference mode), else F32, BF16
// or F16.
func storage(op, name string, t *tensor.Tensor, arithmetic tensor.DType) {
	switch d := t.DType(); {
	case arithmetic == tensor.F64 && d != tensor.F64:
		panic(fmt.Sprintf("cuda: %s: %s is %v, want dtype f64", op, name, t))
	case arithmetic == tensor.F32 && d != tensor.F32 && d != tensor.BF16 && d != tensor.F16:
		panic(fmt.Sprintf("cuda: %s: %s is %v, want dtype f32, bf16 or f16", op, name, t))
	}
}
