package model

import (
	"bytes"
	"math"
	"testing"

	"anneal/internal/filetest"
	"anneal/nn"
	"anneal/precision"
)

// narrow is deep with rounded inputs of segments.
func narrow(segment int) Config {
	c := deep
	c.Recompute = Layout{Whole: 4, Segment: segment, Narrow: true}
	return c
}

// Where the stream has numbers that BF16 holds, rounding its inputs changes no bit of a step.
func TestRoundedInputsOfExactStreamsChangeNothing(t *testing.T) {
	for _, policy := range []string{"fp32", "bf16", "fp64"} {
		for segment := 1; segment <= 2; segment++ {
			prepared := func(c Config) []byte {
				x := newBench(t, c, policy, 2, 8)
				for _, p := range x.m.Params() {
					for i := range p.Value.Len() {
						switch {
						case p.Name == "embed": // multiples of 1/64 below 1
							p.Value.SetFloat64(i, math.Round(64*p.Value.Float64(i))/64)
						case p.Role == nn.Matrix && (p.Shape[0] == c.Dim): // nothing is added to the stream
							p.Value.SetFloat64(i, 0)
						}
					}
				}
				return x.bits()
			}
			want := deep
			want.Recompute = Layout{Whole: 4, Segment: segment}
			if !bytes.Equal(prepared(narrow(segment)), prepared(want)) {
				t.Errorf("%s, segments of %d: rounding exact numbers changes a step", policy, segment)
			}
		}
	}
}

// Rounded inputs take half the memory that was measured, leave every pass the same, and turn the gradient by little.
func TestRoundedInputs(t *testing.T) {
	for _, policy := range precision.Names() {
		x := newBench(t, narrow(1), policy, 2, 8)
		got := x.bits()
		if peaks := x.peaks(); peaks != x.foot {
			t.Errorf("%s: a step used %+v, measured %+v", policy, peaks, x.foot)
		}
		if !bytes.Equal(x.bits(), got) {
			t.Errorf("%s: a second pass differs from the first", policy)
		}
		if n := filetest.AllocsPerRun(3, x.gradients); n != 0 {
			t.Errorf("%s: %v allocations per forward and backward pass", policy, n)
		}
		full := deep
		full.Recompute = Layout{Whole: 4, Segment: 1}
		y := newBench(t, full, policy, 2, 8)
		y.gradients()
		if saved := y.foot.Keep - x.foot.Keep; saved < 4*2*8*full.Dim*2 {
			t.Errorf("%s: %d bytes are saved", policy, saved)
		}
		product, a, b := 0.0, 0.0, 0.0
		for i, p := range x.m.Params() {
			for j := range p.Grad.Len() {
				g, h := p.Grad.Float64(j), y.m.Params()[i].Grad.Float64(j)
				product, a, b = product+g*h, a+g*g, b+h*h
			}
		}
		least := 0.9999
		switch policy { // an input rounded to 8 bits flips roundings of the operands of its products
		case "bf16":
			least = 0.999
		case "fp8":
			least = 0.98
		}
		if cosine := product / math.Sqrt(a*b); cosine < least || bytes.Equal(x.bits(), y.bits()) {
			t.Errorf("%s: the cosine of the gradient with the one of full inputs is %v", policy, cosine)
		}
	}
}
