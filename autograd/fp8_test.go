package autograd

import (
	"math"
	"testing"

	"anneal/device"
	"anneal/internal/isa"
	"anneal/tensor"
)

// toTop is a Scaler that brings the largest magnitude to a number, and notes what it is told to.
type toTop struct {
	top      float64
	recorded int
}

func (s *toTop) Scale(d device.Device, x *tensor.Tensor, record bool) float64 {
	if record {
		s.recorded++
	}
	return float64(float32(s.top / max(d.MaxAbs(x), 1e-12)))
}

// emulated rounds x to FP8 with a scale, element by element, and returns what that stands for.
func emulated(x []float64, top float64) []float64 {
	amax := 1e-12
	for _, v := range x {
		amax = max(amax, math.Abs(v))
	}
	scale := float32(top / amax)
	out := make([]float64, len(x))
	for i, v := range x {
		q := float32(v) * scale
		if top == 448 {
			q = tensor.E4M3FromFloat32(max(-448, min(448, q))).Float32()
		} else {
			q = tensor.E5M2FromFloat32(max(-57344, min(57344, q))).Float32()
		}
		out[i] = float64(q) / float64(scale)
	}
	return out
}

// sum returns c [m, n] with c(i, j) = Σ a(i, p)·b(p, j), elements by index functions.
func sum(m, n, k int, a, b func(i, p int) float64) []float64 {
	c := make([]float64, m*n)
	for i := range m {
		for j := range n {
			for p := range k {
				c[i*n+j] += a(i, p) * b(p, j)
			}
		}
	}
	return c
}

// NUM-11, NUM-12: the three products of a layer are those of operands rounded one by one, up to FP32 sums and the
// rounding of what is stored; so are those of tensors of zeros and with one outlier, where most of the rest vanishes.
func TestFP8LinearMatchesScalarEmulation(t *testing.T) {
	const n, in, out = 9, 40, 24
	for _, c := range []struct {
		name   string
		change func(x, w, dy []float64)
	}{
		{"normal", func(x, w, dy []float64) {}},
		{"zero", func(x, w, dy []float64) { clear(x); clear(dy) }},
		{"outlier", func(x, w, dy []float64) { x[17], w[5], dy[3] = 3e4, -700, 1e6 }},
	} {
		x, w, dy := normals(1, n*in), normals(2, out*in), normals(3, n*out)
		c.change(x, w, dy)
		for _, values := range [][]float64{x, w, dy} { // what BF16 and F32 storage hold
			for i, v := range values {
				values[i] = float64(tensor.BF16FromFloat32(float32(v)).Float32())
			}
		}
		qx, qw, qdy := emulated(x, 448), emulated(w, 448), emulated(dy, 57344)
		want := map[string][]float64{
			"y": sum(n, out, in, func(i, p int) float64 { return qx[i*in+p] },
				func(p, j int) float64 { return qw[j*in+p] }),
			"dx": sum(n, in, out, func(i, p int) float64 { return qdy[i*out+p] },
				func(p, j int) float64 { return qw[p*in+j] }),
			"dw": sum(out, in, n, func(i, p int) float64 { return qdy[p*out+i] },
				func(p, j int) float64 { return qx[p*in+j] }),
		}
		for _, tier := range isa.Tiers() {
			r := newRigOf(t, tier, Types{
				Stream: tensor.BF16, Activation: tensor.BF16, Operand: tensor.BF16, Stat: tensor.F32, FP8: true,
			})
			sx, sw, sy := &toTop{top: 448}, &toTop{top: 448}, &toTop{top: 57344}
			p := &Param{
				Value: *tensor.Of(make([]float32, out*in), out, in), Grad: *tensor.Of(make([]float32, out*in), out, in),
				FP8: &FP8{X: sx, W: sw, DY: sy},
			}
			for i, v := range w {
				p.Value.SetFloat64(i, v)
			}
			vx := r.leaf(x, n, in)
			y := r.Linear(vx, p)
			g, _ := r.gradOf(y)
			for i, v := range dy {
				g.SetFloat64(i, v)
			}
			used := r.temp.Used()
			r.Backward()
			if sx.recorded != 2 || sw.recorded != 2 || sy.recorded != 1 {
				t.Errorf("%v, %s: operands were noted %d, %d and %d times",
					tier, c.name, sx.recorded, sw.recorded, sy.recorded)
			}
			if left, want := r.temp.Used()-used, (2*n*in+63)/64*64; left != want {
				t.Errorf("%v, %s: backward leaves %d bytes in scratch memory, the gradient of x has %d",
					tier, c.name, left, want)
			}
			for _, k := range []struct {
				name string
				got  *tensor.Tensor
				unit float64 // of the storage
			}{{"y", &y.Value, 0x1p-8}, {"dx", &vx.grad, 0x1p-8}, {"dw", &p.Grad, 0x1p-22}} {
				top := 0.0
				for _, v := range want[k.name] {
					top = max(top, math.Abs(v))
				}
				for i, v := range want[k.name] {
					if got := k.got.Float64(i); !(math.Abs(got-v) <= k.unit*math.Abs(v)+1e-6*top) {
						t.Fatalf("%v, %s: %s[%d] = %v, want %v", tier, c.name, k.name, i, got, v)
					}
				}
			}
		}
	}
}

// Without gradients nothing is noted, and a tape of another policy does not look at the scales.
func TestFP8IsTakenNoteOfInTrainingOnly(t *testing.T) {
	for _, fp8 := range []bool{true, false} {
		r := newRigOf(t, isa.Generic, Types{
			Stream: tensor.BF16, Activation: tensor.BF16, Operand: tensor.BF16, Stat: tensor.F32, FP8: fp8,
		})
		r.Reset(false)
		s := &toTop{top: 448}
		p := &Param{Value: *tensor.Of(make([]float32, 16), 4, 4), FP8: &FP8{X: s, W: s, DY: s}}
		// BF16 holds both, E4M3 at the scale of the first not the second
		p.Value.F32()[0], p.Value.F32()[1] = 1.5, 1.0078125
		y := r.Linear(r.leaf([]float64{0, 1, 0, 0}, 1, 4), p).Value.Float64(0)
		if want := map[bool]float64{true: 288 / (448 / 1.5), false: 1.0078125}[fp8]; s.recorded != 0 ||
			math.Abs(y-want) > 0x1p-8 {
			t.Errorf("FP8 %v: noted %d times, product %v, want %v", fp8, s.recorded, y, want)
		}
	}
}
