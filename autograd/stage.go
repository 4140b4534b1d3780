package autograd

import "anneal/tensor"

// A model can run on several tapes, each with a part of it: pipeline stages. The stream leaves one part as the value
// of its last variable and enters the next through Begin; its gradient comes back through Gradient and SetGradient.
// Each tape has its own arena of kept memory, so that several can be between forward and backward at the same time, in
// any order. The arena of temporary memory is empty between blocks, so tapes can share one.

// Begin starts the residual stream from a copy of x [N, D], which another part of the model made.
func (t *Tape) Begin(x *tensor.Tensor) *Var {
	v := t.wrap(t.keep.New(t.Types.Stream, x.Shape()...))
	t.Device.Copy(&v.Value, x)
	if t.grad {
		t.reserve(v)
	}
	return v
}

// Gradient returns the gradient [N, D] of the stream at v, a result of Begin, after BackTo.
func (t *Tape) Gradient(v *Var) *tensor.Tensor { return t.streamGrad(v) }

// SetGradient sets the gradient of the stream at v, the last variable of a part, to g [N, D], before BackTo.
func (t *Tape) SetGradient(v *Var, g *tensor.Tensor) { t.Device.Copy(t.streamGrad(v), g) }
