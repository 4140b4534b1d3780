package autograd

import (
	"math"
	"testing"

	"anneal/internal/isa"
	"anneal/tensor"
)

// inBlocks rounds x [rows, cols] to E4M3 in blocks with scales of powers of two, number by number.
func inBlocks(x []float64, rows, cols, high, wide int) []float64 {
	out := make([]float64, len(x))
	for top := 0; top < rows; top += high {
		for left := 0; left < cols; left += wide {
			each := func(f func(i int)) {
				for r := top; r < min(top+high, rows); r++ {
					for c := left; c < min(left+wide, cols); c++ {
						f(r*cols + c)
					}
				}
			}
			amax := 0.0
			each(func(i int) { amax = max(amax, math.Abs(x[i])) })
			scale := 1.0
			if amax > 0 {
				scale = math.Exp2(math.Ceil(math.Log2(amax / 448)))
			}
			each(func(i int) { out[i] = scale * float64(tensor.E4M3FromFloat32(float32(x[i]/scale)).Float32()) })
		}
	}
	return out
}

// The three products of a layer are those of operands rounded in blocks along their sums, up to FP32 sums and the
// rounding of what is stored. Outliers leave other blocks as they are.
func TestFP8BlocksMatchScalarEmulation(t *testing.T) {
	const n, in, out = 40, 72, 50
	for _, b := range []Blocks{{32, 1}, {32, 32}, {128, 128}} {
		x, w, dy := normals(1, n*in), normals(2, out*in), normals(3, n*out)
		x[17], w[5], dy[3] = 3e4, -700, 1e6
		for _, values := range [][]float64{x, w, dy} { // what BF16 and F32 storage hold
			for i, v := range values {
				values[i] = float64(tensor.BF16FromFloat32(float32(v)).Float32())
			}
		}
		qx, qw := inBlocks(x, n, in, 1, b.Long), inBlocks(w, out, in, b.Wide, b.Long)
		dxdy, dxw := inBlocks(dy, n, out, 1, b.Long), inBlocks(w, out, in, b.Long, b.Wide)
		dwdy, dwx := inBlocks(dy, n, out, b.Long, 1), inBlocks(x, n, in, b.Long, 1)
		want := map[string][]float64{
			"y": sum(n, out, in, func(i, p int) float64 { return qx[i*in+p] },
				func(p, j int) float64 { return qw[j*in+p] }),
			"dx": sum(n, in, out, func(i, p int) float64 { return dxdy[i*out+p] },
				func(p, j int) float64 { return dxw[p*in+j] }),
			"dw": sum(out, in, n, func(i, p int) float64 { return dwdy[p*out+i] },
				func(p, j int) float64 { return dwx[p*in+j] }),
		}
		for _, tier := range isa.Tiers() {
			r := newRigOf(t, tier, Types{
				Stream: tensor.BF16, Activation: tensor.BF16, Operand: tensor.BF16, Stat: tensor.F32, FP8: true,
			})
			p := &Param{
				Value: *tensor.Of(make([]float32, out*in), out, in), Grad: *tensor.Of(make([]float32, out*in), out, in),
				FP8: &FP8{Blocks: b},
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
			r.Backward()
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
						t.Fatalf("%v, blocks %v: %s[%d] = %v, want %v", tier, b, k.name, i, got, v)
					}
				}
			}
		}
	}
}
