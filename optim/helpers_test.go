package optim

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"anneal/device/cpu"
	"anneal/internal/isa"
	"anneal/nn"
	"anneal/tensor"
)

// parameter is one tensor with its gradient, its optimizer and its state on a device.
type parameter struct {
	nn.Param
	dev     *cpu.Device
	opt     Optimizer
	state   State
	scratch *tensor.Arena
}

// newParameter returns a hidden weight of the shape, or a vector, with an optimizer.
func newParameter(t testing.TB, tier isa.Tier, dtype tensor.DType, opt Optimizer, start []float64,
	shape ...int) *parameter {
	t.Helper()
	if shape == nil {
		shape = []int{len(start)}
	}
	a, err := tensor.NewArena("test", 1<<16+64*len(start))
	if err != nil {
		t.Fatal(err)
	}
	x := &parameter{Param: *nn.Declare("w", nn.Matrix, shape...), dev: cpu.NewTier(tier, 1), opt: opt}
	x.Allocate(a, dtype, a, dtype)
	_, need := Measure(opt, []*nn.Param{&x.Param})
	if x.scratch, err = tensor.NewArena("scratch", need); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.dev.Close(); x.scratch.Close(); a.Close() })
	x.state = opt.Layout(a, &x.Param)
	fill(&x.Value, start, 1)
	return x
}

// step makes one update from gradient g. It is given as four times g at a quarter of the scale: powers of two, so that
// rounding is that of g itself.
func (x *parameter) step(g []float64, s Step) {
	fill(&x.Grad, g, 4)
	s.Scale = 0.25
	x.opt.Update(x.dev, &x.Param, x.state, s, x.scratch)
}

// times returns factor · values.
func times(factor float64, values []float64) []float64 {
	x := make([]float64, len(values))
	for i, v := range values {
		x[i] = factor * v
	}
	return x
}

func fill(x *tensor.Tensor, values []float64, scale float64) {
	for i, v := range values {
		x.SetFloat64(i, v*scale)
	}
}

// each runs f on every tier in F32, and in F64 on the portable kernels.
func each(t *testing.T, f func(t *testing.T, tier isa.Tier, dtype tensor.DType)) {
	for _, tier := range isa.Tiers() {
		t.Run(fmt.Sprint(tier, "/f32"), func(t *testing.T) { f(t, tier, tensor.F32) })
	}
	t.Run("generic/f64", func(t *testing.T) { f(t, isa.Generic, tensor.F64) })
}

// near compares with a relative tolerance, or with an absolute one where that is wider.
func near(t *testing.T, what string, got *tensor.Tensor, want []float64, relative, absolute float64) {
	t.Helper()
	for i, w := range want {
		if g := got.Float64(i); !(math.Abs(g-w) <= max(absolute, relative*math.Abs(w))) {
			t.Errorf("%s[%d] = %.12g, want %.12g", what, i, g, w)
		}
	}
}

// loadJSON reads a fixture.
func loadJSON(t testing.TB, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
