package optim

import (
	"fmt"
	"math"
	"testing"

	"anneal/internal/isa"
	"anneal/nn"
	"anneal/tensor"
)

// soapSteps is ten steps by the formulas of the paper (testdata/make_soap.py).
type soapSteps struct {
	Cases []struct {
		Name                  string
		Shape                 []int
		LR, Beta1, Beta2, Eps float64
		WeightDecay           float64 `json:"weight_decay"`
		Every                 int
		Start                 []float64
		Gradients, Weights    [][]float64 // [step][element]
	}
}

func TestSOAPMatchesTheFormulas(t *testing.T) {
	var f soapSteps
	loadJSON(t, "testdata/soap.json", &f)
	each(t, func(t *testing.T, tier isa.Tier, dtype tensor.DType) {
		for _, c := range f.Cases {
			absolute := 1e-9
			if dtype == tensor.F32 { // rounding turns the vectors of eigenvalues near 0
				absolute = 0.1 * c.LR
			}
			o := &SOAP{Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Eps, Every: c.Every}
			p := newParameter(t, tier, dtype, o, c.Start, c.Shape...)
			for i, g := range c.Gradients {
				p.step(g, Step{T: i + 1, LR: c.LR, Decay: c.WeightDecay})
				near(t, fmt.Sprintf("%s: step %d", c.Name, i+1), &p.Value, c.Weights[i], 0, absolute)
			}
		}
	})
}

// Parts of a fused weight are updated as matrices of their own.
func TestSOAPRotatesPartsByThemselves(t *testing.T) {
	const cols = 6
	o := func() *SOAP { return &SOAP{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Every: 2} }
	gradient := func(step int) []float64 { return times(1+0.1*float64(step), values(9*cols)) }
	fused := newParameter(t, isa.Generic, tensor.F64, o(), values(9*cols), 9, cols)
	fused.Parts = []nn.Part{{Name: "a", Rows: 4}, {Name: "b", Rows: 5}}
	arena, err := tensor.NewArena("state", 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	defer arena.Close()
	fused.state = o().Layout(arena, &fused.Param)
	a := newParameter(t, isa.Generic, tensor.F64, o(), values(9 * cols)[:4*cols], 4, cols)
	b := newParameter(t, isa.Generic, tensor.F64, o(), values(9 * cols)[4*cols:], 5, cols)
	for step := 1; step <= 5; step++ {
		g, s := gradient(step), Step{T: step, LR: 0.01, Decay: 0.1}
		fused.step(g, s)
		a.step(g[:4*cols], s)
		b.step(g[4*cols:], s)
	}
	for i := range 9 * cols {
		want := a.Value.Float64(min(i, 4*cols-1))
		if i >= 4*cols {
			want = b.Value.Float64(i - 4*cols)
		}
		if got := fused.Value.Float64(i); got != want {
			t.Fatalf("element %d is %v, alone %v", i, got, want)
		}
	}
}

// Rows become orthonormal, and the old ones are sums of the new ones up to their own, with a positive last factor.
func TestGramSchmidtIsQR(t *testing.T) {
	each(t, func(t *testing.T, tier isa.Tier, dtype tensor.DType) {
		tolerance := map[tensor.DType]float64{tensor.F64: 3e-9, tensor.F32: 2e-5}[dtype]
		for _, n := range []int{1, 2, 31, 32, 33, 80} {
			x := make([]float64, n*n)
			for i := range x {
				x[i] = math.Sin(float64(1+i*i%997)) * math.Pow(10, -3*float64(i/n)/float64(n)) // rows of all sizes
			}
			p := newParameter(t, tier, dtype, SGD{}, x, n, n)
			scratch, err := tensor.NewArena("scratch", 8*(n*blockRows+64)+4096)
			if err != nil {
				t.Fatal(err)
			}
			new(GramSchmidt).Run(p.dev, &p.Value, scratch)
			scratch.Close()
			dot := func(a func(k int) float64, j int) (sum float64) {
				for k := range n {
					sum += a(k) * p.Value.Float64(j*n+k)
				}
				return sum
			}
			for i := range n {
				for j := range n {
					q := dot(func(k int) float64 { return p.Value.Float64(i*n + k) }, j)
					r := dot(func(k int) float64 { return x[i*n+k] }, j)
					one := 0.0
					if i == j {
						one = 1
					}
					if math.Abs(q-one) > tolerance || j > i && math.Abs(r) > tolerance*10 || j == i && r <= 0 {
						t.Fatalf("n %d: rows %d and %d: product %v, factor %v", n, i, j, q, r)
					}
				}
			}
		}
	})
}
