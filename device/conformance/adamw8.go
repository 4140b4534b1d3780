package conformance

import (
	"math"
	"testing"

	"anneal/device"
	"anneal/tensor"
)

// adamW8 follows two steps: the parameter and the largest magnitudes equal those of AdamW on the decoded numbers, and
// each code is that of the nearest number; for v, of the nearest number above 0.
func adamW8(t *testing.T, d bench, _, wide tensor.DType) {
	o := device.AdamW{LR: .01, Beta1: .9, Beta2: .95, Eps: 1e-8, Decay: .1, Scale: .5, Correct1: 10, Correct2: 20}
	tolerance := map[tensor.DType]float64{tensor.F32: 4e-6, tensor.F64: 4e-7}[wide] // the format's numbers are float32
	for _, n := range []int{1, 17, 255, 256, 257, 1000, 16700} {
		blocks := (n + device.Block - 1) / device.Block
		p := d.of(wide, normal(n, 16))
		none := tensor.View(tensor.U8, make([]byte, n), n)
		m, v := d.place(&none), d.place(&none)
		mTop, vTop := d.of(wide, make([]float64, blocks)), d.of(wide, make([]float64, blocks))
		for step := range 2 {
			g := normal(n, uint64(17+step))
			for i := range g {
				g[i] *= math.Pow(10, float64(-i%5))
			}
			x := [][]float64{read[float64](p, 0), g, numbers(m, mTop, true), numbers(v, vTop, false)}
			d.AdamW8(p, d.of(wide, g), m, mTop, v, vTop, o)
			d.wait(t)
			adamWOf[float64](o)(x)
			for i, want := range x[0] {
				if got := p.Float64(i); math.Abs(got-want) > tolerance*(1+math.Abs(want)) {
					t.Fatalf("%v, %d elements, step %d: parameter %d is %v, want %v", wide, n, step, i, got, want)
				}
			}
			for _, c := range []struct {
				name       string
				codes, top *tensor.Tensor
				signed     bool
				want       []float64
			}{{"m", m, mTop, true, x[2]}, {"v", v, vTop, false, x[3]}} {
				table := tensor.Dynamic8(c.signed)
				for b := range blocks {
					from, to := b*device.Block, min((b+1)*device.Block, n)
					top := 0.0
					for _, y := range c.want[from:to] {
						top = max(top, math.Abs(y))
					}
					if got := c.top.Float64(b); math.Abs(got-top) > tolerance*top {
						t.Fatalf("%v, %d elements, step %d: the largest of block %d of %s is %v, want %v",
							wide, n, step, b, c.name, got, top)
					}
					for i := from; i < to; i++ {
						y, nearest := c.want[i]/top, math.Inf(1)
						for _, number := range table {
							if number != 0 || y == 0 || c.signed {
								nearest = min(nearest, math.Abs(float64(number)-y))
							}
						}
						if got := math.Abs(float64(table[c.codes.Raw()[i]]) - y); got > nearest+tolerance*math.Abs(y) {
							t.Fatalf("%v, %d elements, step %d: code %d of %s, %v, is %v away; "+
								"the nearest number is %v away", wide, n, step, i, c.name, y, got, nearest)
						}
					}
				}
			}
		}
	}
}

// numbers returns the numbers that codes stand for.
func numbers(codes, top *tensor.Tensor, signed bool) []float64 {
	table := tensor.Dynamic8(signed)
	x := make([]float64, codes.Len())
	for i, c := range codes.Raw() {
		x[i] = float64(table[c]) * top.Float64(i/device.Block)
	}
	return x
}
