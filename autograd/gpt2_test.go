package autograd

import (
	"math"
	"testing"
)

// The operations that GPT-2 has and Llama has not, against PyTorch.

func checkLayerNorm(r *rig, c golden) {
	x, g, b := c.Tensors["x"], c.Tensors["gain"], c.Tensors["bias"]
	in, gain := r.leaf(x.Data, x.Shape...), param(g.Data, g.Shape...)
	gain.Bias = param(b.Data, b.Shape...)
	y := r.LayerNorm(in, gain, c.Attrs["eps"])
	r.equal("y", y.Value.F64(), c.Tensors["y"].Data)
	r.backward(y, c.Tensors["dy"].Data)
	r.equal("dx", in.grad.F64(), c.Tensors["dx"].Data)
	r.equal("dgain", gain.Grad.F64(), c.Tensors["dgain"].Data)
	r.equal("dbias", gain.Bias.Grad.F64(), c.Tensors["dbias"].Data)
}

func checkLinearBias(r *rig, c golden) {
	x, w, b := c.Tensors["x"], c.Tensors["w"], c.Tensors["b"]
	in, weight := r.leaf(x.Data, x.Shape...), param(w.Data, w.Shape...)
	weight.Bias = param(b.Data, b.Shape...)
	y := r.Linear(in, weight)
	r.equal("y", y.Value.F64(), c.Tensors["y"].Data)
	r.backward(y, c.Tensors["dy"].Data)
	r.equal("dx", in.grad.F64(), c.Tensors["dx"].Data)
	r.equal("dw", weight.Grad.F64(), c.Tensors["dw"].Data)
	r.equal("db", weight.Bias.Grad.F64(), c.Tensors["db"].Data)

	// The same sum added to a stream of zeros has the same gradients.
	r.Reset(true)
	in, weight = r.leaf(x.Data, x.Shape...), param(w.Data, w.Shape...)
	weight.Bias = param(b.Data, b.Shape...)
	stream := r.leaf(make([]float64, len(c.Tensors["y"].Data)), c.Tensors["y"].Shape...)
	y = r.AddBranch(stream, in, weight, Drop{}, nil)
	r.equal("sum", y.Value.F64(), c.Tensors["y"].Data)
	r.backward(y, c.Tensors["dy"].Data)
	r.equal("dx of the sum", in.grad.F64(), c.Tensors["dx"].Data)
	r.equal("db of the sum", weight.Bias.Grad.F64(), c.Tensors["db"].Data)
}

func checkGELU(r *rig, c golden) {
	x := c.Tensors["x"]
	in := r.leaf(x.Data, x.Shape...)
	y := r.GELU(in)
	r.equal("y", y.Value.F64(), c.Tensors["y"].Data)
	r.backward(y, c.Tensors["dy"].Data)
	r.equal("dx", in.grad.F64(), c.Tensors["dx"].Data)
}

// A scaled gain takes its bias along: all that the norm gives is scaled, and so are the gradients of both.
func TestScaleParamScalesTheBias(t *testing.T) {
	const n, d, factor = 3, 8, 0.375
	run := func(scale bool) (y []float64, gain *Param) {
		r := newRig(t)
		gain = param(normals(1, d), d)
		gain.Bias = param(normals(2, d), d)
		used := gain
		if scale {
			used = r.ScaleParam(gain, factor)
		}
		out := r.LayerNorm(r.leaf(normals(3, n*d), n, d), used, 1e-5)
		y = append(y, out.Value.F64()...)
		r.backward(out, normals(4, n*d))
		return y, gain
	}
	y, gain := run(false)
	scaled, other := run(true)
	for _, c := range []struct {
		name      string
		got, want []float64
	}{
		{"y", scaled, y}, {"dgain", other.Grad.F64(), gain.Grad.F64()},
		{"dbias", other.Bias.Grad.F64(), gain.Bias.Grad.F64()},
	} {
		for i, w := range c.want {
			if math.Abs(c.got[i]-factor*w) > 1e-12 {
				t.Errorf("%s[%d] = %v, want %v times %v", c.name, i, c.got[i], factor, w)
			}
		}
	}
}
