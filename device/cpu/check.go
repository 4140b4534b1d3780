package cpu

import (
	"fmt"

	"anneal/tensor"
)

// A kernel checks the shapes and dtypes of its tensors before it starts. A mismatch is a programming error and
// panics; user input is validated earlier.

// shape panics unless t, seen as [Rows, Cols], is [rows, cols].
func shape(op, name string, t *tensor.Tensor, rows, cols int) {
	if t.Rank() == 0 || t.Cols() != cols || t.Rows() != rows {
		panic(fmt.Sprintf("cpu: %s: %s is %v, want [%d %d]", op, name, t, rows, cols))
	}
}

// length panics unless t has n elements.
func length(op, name string, t *tensor.Tensor, n int) {
	if t.Len() != n {
		panic(fmt.Sprintf("cpu: %s: %s is %v, want %d elements", op, name, t, n))
	}
}

// dtype panics unless t has dtype want.
func dtype(op, name string, t *tensor.Tensor, want tensor.DType) {
	if t.DType() != want {
		panic(fmt.Sprintf("cpu: %s: %s is %v, want dtype %v", op, name, t, want))
	}
}

// wide panics unless t has the dtype of arithmetic: F64 in the reference mode, else F32.
func wide(op, name string, t *tensor.Tensor, ref bool) {
	if ref {
		dtype(op, name, t, tensor.F64)
	} else {
		dtype(op, name, t, tensor.F32)
	}
}

// storage panics unless t has a dtype of activations: F64 in the reference mode, else F32, BF16 or F16.
func storage(op, name string, t *tensor.Tensor, ref bool) {
	if d := t.DType(); ref && d != tensor.F64 || !ref && d != tensor.F32 && d != tensor.BF16 && d != tensor.F16 {
		panic(fmt.Sprintf("cpu: %s: %s is %v, want dtype %s",
			op, name, t, map[bool]string{true: "f64", false: "f32, bf16 or f16"}[ref]))
	}
}
