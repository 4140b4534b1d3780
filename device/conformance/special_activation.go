package conformance

import (
	"slices"
	"testing"

	"anneal/tensor"
)

// activationsAgain checks that gradients of activation functions also return the activations, with the bits of
// forward, and that both may overwrite their inputs.
func activationsAgain(t *testing.T, d bench, act, _ tensor.DType) {
	for _, f := range []struct {
		name    string
		operand int // columns of x for each of act
		forward func(act, x *tensor.Tensor)
		grad    func(dx, act, dact, x *tensor.Tensor)
	}{
		{"SwiGLU", 2, d.SwiGLU, d.SwiGLUGrad},
		{"GeGLU", 2, d.GeGLU, d.GeGLUGrad},
		{"GELU", 1, d.GELU, d.GELUGrad},
		{"ReLUSquared", 1, d.ReLUSquared, d.ReLUSquaredGrad},
	} {
		for _, cols := range []int{16, 96, 1500} {
			const rows = 3
			x := d.of(act, normal(rows*cols*f.operand, 1), rows, cols*f.operand)
			dact := d.of(act, normal(rows*cols, 2), rows, cols)
			y, dx := d.of(act, normal(rows*cols, 3), rows, cols),
				d.of(act, normal(rows*cols*f.operand, 4), rows, cols*f.operand)
			f.forward(y, x)
			f.grad(dx, nil, dact, x)
			f.grad(x, dact, dact, x) // in place
			d.wait(t)
			if !slices.Equal(dact.Raw(), y.Raw()) {
				t.Errorf("%v: %sGrad on rows of %d gives another activation than %s", act, f.name, cols, f.name)
			}
			if !slices.Equal(x.Raw(), dx.Raw()) {
				t.Errorf("%v: %sGrad on rows of %d gives another gradient in place", act, f.name, cols)
			}
		}
	}
}
