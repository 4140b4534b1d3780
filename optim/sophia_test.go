package optim

import (
	"fmt"
	"math"
	"testing"

	"anneal/autograd"
	"anneal/device"
	"anneal/device/cpu"
	"anneal/internal/isa"
	"anneal/nn"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// observe takes the gradient of a mean loss over batch tokens into the curvature.
func (x *parameter) observe(g []float64, batch float64) {
	fill(&x.Grad, g, batch)
	x.opt.(*Sophia).Observe(x.dev, &x.Param, x.state, 1/batch)
}

func TestSophiaMatchesTheOriginal(t *testing.T) {
	var f struct {
		Every              int
		Batch              float64
		Start              []float64
		Gradients, Sampled [][]float64 // [step][element]
		Sets               []struct {
			Name                  string
			LR, Beta1, Beta2, Rho float64
			WeightDecay           float64     `json:"weight_decay"`
			Weights               [][]float64 // after each step
			M, H                  []float64   // after the last
		}
	}
	loadJSON(t, "testdata/sophia.json", &f)
	each(t, func(t *testing.T, tier isa.Tier, dtype tensor.DType) {
		relative, absolute := 1e-10, 1e-14
		if dtype == tensor.F32 {
			relative, absolute = 1e-5, 1e-6
		}
		for _, c := range f.Sets {
			x := newParameter(t, tier, dtype, &Sophia{Beta1: c.Beta1, Beta2: c.Beta2, Rho: c.Rho, Every: f.Every},
				f.Start)
			for i, g := range f.Gradients {
				x.step(g, Step{T: i + 1, LR: c.LR, Decay: c.WeightDecay})
				if x.opt.(*Sophia).Due(i + 1) {
					x.observe(f.Sampled[i], f.Batch)
				}
				near(t, fmt.Sprintf("%s: step %d: weights", c.Name, i+1), &x.Value, c.Weights[i], relative, absolute)
			}
			near(t, c.Name+": m", &x.state[0].Tensor, c.M, relative, absolute)
			near(t, c.Name+": h", &x.state[1].Tensor, times(f.Batch, c.H), relative, absolute)
		}
	})
}

// OPT-21: three steps of the reference block, the curvature's gradient being a tenth of the gradient, every second
// step.
func TestSophiaMatchesTheReferenceBlock(t *testing.T) {
	each(t, func(t *testing.T, tier isa.Tier, dtype tensor.DType) {
		x := newParameter(t, tier, dtype, &Sophia{Beta1: .965, Beta2: .99, Rho: .04, Every: 2},
			[]float64{.5, -1, 2, -.25, 1.5, -3})
		for i, g := range [][]float64{
			{.1, -.2, .3, .4, -.5, .6}, {-.3, .1, .2, -.6, .05, 0}, {.02, .4, -.1, .3, .7, -.9},
		} {
			x.step(g, Step{T: i + 1, LR: 0.01, Decay: 0.1})
			if x.opt.(*Sophia).Due(i + 1) {
				x.observe(times(0.1, g), 1000)
			}
		}
		near(t, "weights", &x.Value,
			[]float64{.5085114895, -.987032989, 1.964035988, -.25924075975, 1.5054745085, -3.000979007}, 0, 2e-7)
	})
}

// OPT-23: whatever gradient and curvature, no weight moves by more than the rate, and the share of those that move by
// less is what the optimizer says.
func TestSophiaNeverStepsBeyondTheRate(t *testing.T) {
	o := &Sophia{Beta1: 0.9, Beta2: 0.99, Rho: 0.04, Every: 1}
	x := newParameter(t, isa.Tiers()[0], tensor.F32, o, make([]float64, 40))
	rapid.Check(t, func(rt *rapid.T) {
		size := math.Pow(10, rapid.Float64Range(-8, 8).Draw(rt, "log10 of the gradient"))
		lr := rapid.Float64Range(1e-6, 1).Draw(rt, "lr")
		g := gaussian(rapid.Uint64().Draw(rt, "seed"), 40)
		fill(&x.Value, g, 0) // of zeros every bit of a step is seen
		o.TakeWins()
		x.step(times(size, g), Step{T: 1, LR: lr})
		inside := 0
		for i := range g {
			moved := math.Abs(x.Value.Float64(i))
			if moved > float64(float32(lr)) {
				rt.Fatalf("weight %d moved by %v at the rate %v", i, moved, lr)
			}
			if moved < float64(float32(lr)) {
				inside++
			}
		}
		// a ratio of 1 − 2⁻²⁵ may round either way
		free, moved := o.TakeWins()
		if got, want := float64(free)/float64(moved), float64(inside)/40; math.Abs(got-want) > 1.0/40 {
			rt.Fatalf("win rate %v, but %v of the weights moved by less than the rate", got, want)
		}
		x.observe(g, 7)
	})
}

// OPT-22: over many draws of labels the estimate has the mean that it is meant to have, the diagonal of the
// Gauss–Newton matrix: for softmax regression of B inputs x, B·E[ĝ²] of weight [c, j] is Σ x_j²·p_c·(1−p_c) / B.
func TestSampledLabelsEstimateTheGaussNewtonMatrix(t *testing.T) {
	const inputs, dim, classes, draws = 8, 3, 4, 100_000
	arena := func(name string) *tensor.Arena {
		a, err := tensor.NewArena(name, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		return a
	}
	dev := cpu.NewTier(isa.Tiers()[0], 1)
	t.Cleanup(dev.Close)
	a := arena("model")
	types := autograd.Types{Stream: tensor.F32, Activation: tensor.F32, Operand: tensor.F32, Stat: tensor.F32}
	tape := autograd.NewTape(dev, types, arena("keep"), arena("temp"))
	// The inputs are rows of a table, so that the tape has what it differentiates.
	var table, head nn.Param
	table.Value, table.Grad = a.New(tensor.F32, inputs, dim), a.New(tensor.F32, inputs, dim)
	head.Value, head.Grad = a.New(tensor.F32, classes, dim), a.New(tensor.F32, classes, dim)
	x, w := gaussian(1, inputs*dim), gaussian(2, classes*dim)
	fill(&table.Value, x, 1)
	fill(&head.Value, w, 1)
	ids, targets, losses := a.New(tensor.I32, inputs), a.New(tensor.I32, inputs), a.New(tensor.F32, inputs)
	for i := range ids.I32() {
		ids.I32()[i] = int32(i)
	}
	o := &Sophia{}
	state := o.Layout(a, &head)
	for n := range draws {
		tape.Reset(true)
		head.ResetGrad()
		h := tape.Embedding(&table.Param, &ids)
		tape.HeadLoss(h, &head.Param, &targets, &losses,
			device.LossOptions{Labels: tensor.NewRNG(9, tensor.PurposeLabel, uint32(n))})
		o.Beta2 = 1 - 1/float64(n+1) // the plain mean of all draws
		o.Observe(dev, &head, state, 1.0/inputs)
	}
	for j := range dim {
		var p [inputs][classes]float64
		for i := range inputs {
			sum := 0.0
			for c := range classes {
				z := 0.0
				for k := range dim {
					z += x[i*dim+k] * w[c*dim+k]
				}
				p[i][c] = math.Exp(z)
				sum += p[i][c]
			}
			for c := range classes {
				p[i][c] /= sum
			}
		}
		for c := range classes {
			want := 0.0
			for i := range inputs {
				want += x[i*dim+j] * x[i*dim+j] * p[i][c] * (1 - p[i][c]) / inputs
			}
			if got := state[1].Float64(c*dim + j); math.Abs(got-want) > 0.02*want {
				t.Errorf("weight [%d, %d]: the mean estimate is %v, the Gauss–Newton diagonal %v", c, j, got, want)
			}
		}
	}
}
