package optim

import (
	"fmt"
	"math"
	"testing"

	"anneal/internal/isa"
	"anneal/nn"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// decoupled are the optimizers whose decay is apart from the gradient.
var decoupled = map[string]Optimizer{
	"adamw":     AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8},
	"adam8bit":  Adam8bit{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8},
	"lion":      Lion{Beta1: 0.95, Beta2: 0.98},
	"ademamix":  AdEMAMix{Beta1: 0.9, Beta2: 0.999, Beta3: 0.9999, Alpha: 5, Eps: 1e-8, Ramp: 30},
	"adafactor": &Adafactor{RelativeStep: true},
	"palm":      &Adafactor{RelativeStep: true, Whole: true, Beta1: 0.9},
}

// values returns n numbers around 0, a fixed function of their index.
func values(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = math.Sin(1 + 0.7*float64(i))
	}
	return x
}

// OPT-6: with g = 0, decoupled decay shrinks weights by exactly Π(1 − lr·λ); coupled decay does not.
func TestDecayIsDecoupled(t *testing.T) {
	start := values(24)
	each(t, func(t *testing.T, tier isa.Tier, dtype tensor.DType) {
		relative := map[tensor.DType]float64{tensor.F64: 1e-14, tensor.F32: 20 * 0x1p-23}[dtype]
		decay := func(o Optimizer) (x *parameter, want []float64) {
			x = newParameter(t, tier, dtype, o, start, 4, 6)
			factor := 1.0
			for step := 1; step <= 20; step++ {
				lr := 0.01 * float64(step)
				x.step(make([]float64, len(start)), Step{T: step, LR: lr, Decay: 0.3})
				factor *= 1 - lr*0.3
			}
			return x, times(factor, start)
		}
		for name, o := range decoupled {
			x, want := decay(o)
			near(t, name, &x.Value, want, relative, 0)
		}
		x, want := decay(Adam{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8})
		for i, w := range want {
			if got := x.Value.Float64(i); math.Abs(got-w) < 0.1*math.Abs(w) {
				t.Errorf("coupled decay takes weight %d from %v to %v, as decoupled decay does", i, start[i], got)
			}
		}
	})
}

// OPT-13: without decay every weight moves by the rate or not at all.
func TestLionMovesEveryWeightByTheRate(t *testing.T) {
	each(t, func(t *testing.T, tier isa.Tier, dtype tensor.DType) {
		g := values(40)
		g[3], g[17] = 0, 0
		start := times(0, g)
		x := newParameter(t, tier, dtype, Lion{0.95, 0.98}, start)
		x.step(g, Step{T: 1, LR: 0.25})
		for i := range g {
			want := 0.0
			if g[i] != 0 {
				want = math.Copysign(0.25, -g[i])
			}
			if got := x.Value.Float64(i); got != want {
				t.Errorf("gradient %v moves weight %d from 0 to %v, want %v", g[i], i, got, want)
			}
		}
	})
}

// OPT-2: on the loss h·w²/2 a step of gradient descent multiplies w by 1 − lr·h: it converges for lr < 2/h and
// diverges above.
func TestGradientDescentContractsAQuadratic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := rapid.Float64Range(0.1, 10).Draw(rt, "h")
		lr := rapid.Float64Range(0.01, 3).Draw(rt, "lr·h") / h
		x := newParameter(t, isa.Generic, tensor.F64, SGD{}, []float64{1})
		for step := 1; step <= 5; step++ {
			before := x.Value.Float64(0)
			x.step([]float64{h * before}, Step{T: step, LR: lr})
			if got, want := x.Value.Float64(0), (1-lr*h)*before; math.Abs(got-want) > 1e-13*math.Abs(before) {
				rt.Fatalf("h %v, lr %v: w goes from %v to %v, want %v", h, lr, before, got, want)
			}
		}
		if w := math.Abs(x.Value.Float64(0)); (w > 1) != (lr*h > 2) {
			rt.Fatalf("h %v, lr %v: |w| goes from 1 to %v in five steps", h, lr, w)
		}
	})
}

// OPT-9: where the squares of the gradient are an outer product, the factored second moment loses nothing.
func TestFactorsOfAnOuterProductAreExact(t *testing.T) {
	const rows, cols = 5, 7
	g := make([]float64, rows*cols)
	for i := range g {
		g[i] = (1 + float64(i/cols)) * math.Exp(0.3*float64(i%cols)) * math.Copysign(1, math.Sin(float64(i)))
	}
	factored := newParameter(t, isa.Generic, tensor.F64, &Adafactor{}, values(rows*cols), rows, cols)
	whole := newParameter(t, isa.Generic, tensor.F64, &Adafactor{Whole: true}, values(rows*cols), rows, cols)
	for step := 1; step <= 4; step++ {
		s := Step{T: step, LR: 0.1}
		factored.step(times(float64(step*step), g), s)
		whole.step(times(float64(step*step), g), s)
	}
	near(t, "weights", &factored.Value, read(&whole.Value), 1e-12, 0)
}

// OPT-10: whatever the gradient, an update's root mean square is at most the rate.
func TestAdafactorClipsItsUpdate(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows, cols := rapid.IntRange(1, 9).Draw(rt, "rows"), rapid.IntRange(1, 9).Draw(rt, "cols")
		whole := rapid.Bool().Draw(rt, "whole")
		x := newParameter(t, isa.Generic, tensor.F64, &Adafactor{Unscaled: true, Whole: whole},
			values(rows*cols), rows, cols)
		for step := 1; step <= 3; step++ {
			before := read(&x.Value)
			g := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), rows*cols, rows*cols).Draw(rt, "gradient")
			x.step(g, Step{T: step, LR: 0.1})
			sum := 0.0
			for i, b := range before {
				sum += (x.Value.Float64(i) - b) * (x.Value.Float64(i) - b)
			}
			if rms := math.Sqrt(sum / float64(len(before))); !(rms <= 0.1*(1+1e-9)) {
				rt.Fatalf("[%d %d], whole %v, step %d: the update has the root mean square %v, the rate is 0.1",
					rows, cols, whole, step, rms)
			}
		}
	})
}

// A fused weight is updated as the matrices that it is made of would be, bit for bit.
func TestPartsAreMatricesOfTheirOwn(t *testing.T) {
	const cols = 6
	start, g := values(10*cols), times(3, values(10*cols))
	for _, o := range []*Adafactor{{RelativeStep: true}, {Beta1: 0.9}} {
		fused := newParameter(t, isa.Generic, tensor.F32, o, start, 10, cols)
		fused.Parts = []nn.Part{{Name: "q", Rows: 5}, {Name: "k", Rows: 2}, {Name: "v", Rows: 3}}
		a := tensor.NewMeasure("names")
		names := ""
		for _, e := range o.Layout(a, &fused.Param) {
			names += " " + e.Name
		}
		if want := " r.q c.q r.k c.k r.v c.v"; names != want && names != want+" m" {
			t.Errorf("the state has the names%s, want%s", names, want)
		}
		arena, err := tensor.NewArena("state", 1<<16)
		if err != nil {
			t.Fatal(err)
		}
		fused.state = o.Layout(arena, &fused.Param)
		for step := 1; step <= 3; step++ {
			fused.step(g, Step{T: step, LR: 0.1})
		}
		row := 0
		for _, part := range fused.Parts {
			from, to := row*cols, (row+part.Rows)*cols
			row += part.Rows
			alone := newParameter(t, isa.Generic, tensor.F32, o, start[from:to], part.Rows, cols)
			for step := 1; step <= 3; step++ {
				alone.step(g[from:to], Step{T: step, LR: 0.1})
			}
			for i := range to - from {
				if got, want := fused.Value.Float64(from+i), alone.Value.Float64(i); got != want {
					t.Fatalf("momentum %v: element %d of part %s is %v, of a matrix of its own %v",
						o.Beta1 > 0, i, part.Name, got, want)
				}
			}
		}
		arena.Close()
	}
}

// Bytes of state for each parameter of a 256×1024 matrix, from the arena.
func TestStateIsAsSmallAsPromised(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Optimizer
		want float64
	}{
		{"sgd", SGD{}, 0},
		{"sgd with momentum", SGD{Momentum: 0.9}, 4},
		{"adam", Adam{}, 8},
		{"adamw", AdamW{}, 8},
		{"adam8bit", Adam8bit{}, 2 + 8.0/256}, // OPT-26
		{"moments in bf16", &Adam16bit{}, 4},
		{"lion", Lion{}, 4},
		{"ademamix", AdEMAMix{}, 12},
		{"schedulefree", ScheduleFree{}, 12},
		{"soap", &SOAP{Every: 1}, 8 + 8.0*(256*256+1024*1024)/(256*1024)},
		{"adafactor", &Adafactor{}, 4.0 * (256 + 1024) / (256 * 1024)}, // OPT-11
		{"adafactor with momentum", &Adafactor{Beta1: 0.9}, 4 + 4.0*(256+1024)/(256*1024)},
		{"adafactor, whole with momentum", &Adafactor{Whole: true, Beta1: 0.9}, 8},
	} {
		a := tensor.NewMeasure("weights")
		p := nn.Declare("w", nn.Matrix, 256, 1024)
		p.Allocate(a, tensor.F32, a, tensor.F32)
		state, _ := Measure(c.o, []*nn.Param{p})
		if got := float64(state) / float64(p.Value.Len()); got != c.want {
			t.Errorf("%s keeps %v bytes a parameter, want %v", c.name, got, c.want)
		}
		if got := c.o.Layout(tensor.NewMeasure("state"), p).Bytes(); got != state {
			t.Errorf("%s: its tensors have %d bytes, the arena %d", c.name, got, state)
		}
	}
}

// α rises linearly and β3 with its half-life; both end at their values, and β3 is never below β1.
func TestAdEMAMixRampsUp(t *testing.T) {
	o := AdEMAMix{Beta1: 0.9, Beta3: 0.9999, Alpha: 8, Ramp: 1000}
	half := func(beta float64) float64 { return math.Log(0.5) / math.Log(beta) }
	for _, step := range []int{1, 250, 500, 999, 1000, 5000} {
		x := min(float64(step)/1000, 1)
		alpha, beta3 := o.scheduled(step)
		want := (1-x)*half(0.9) + x*half(0.9999)
		if math.Abs(alpha-8*x) > 1e-12 || math.Abs(half(beta3)-want) > 1e-9*want {
			t.Errorf("update %d: α %v, half-life %v; want %v, %v", step, alpha, half(beta3), 8*x, want)
		}
	}
	if a, b := (AdEMAMix{Beta3: 0.99, Alpha: 2}).scheduled(1); a != 2 || b != 0.99 {
		t.Errorf("without a ramp update 1 has α %v and β3 %v", a, b)
	}
}

func read(x *tensor.Tensor) []float64 {
	v := make([]float64, x.Len())
	for i := range v {
		v[i] = x.Float64(i)
	}
	return v
}

func ExampleMeasure() {
	a := tensor.NewMeasure("weights")
	p := nn.Declare("w", nn.Matrix, 512, 512)
	p.Allocate(a, tensor.F32, a, tensor.F32)
	for _, o := range []Optimizer{AdamW{}, Lion{}} {
		state, _ := Measure(o, []*nn.Param{p})
		fmt.Printf("%T: %d bytes a parameter\n", o, state/p.Value.Len())
	}
	// Output:
	// optim.AdamW: 8 bytes a parameter
	// optim.Lion: 4 bytes a parameter
}
