package model

import (
	"bytes"
	"math"
	"testing"

	"anneal/autograd"
	"anneal/internal/filetest"
	"anneal/precision"
	"anneal/tensor"
)

// dropping is a deep model that drops elements and branches.
var dropping = func() Config {
	c := deep
	c.Dropout, c.StochasticDepth = 0.2, 0.6
	return c
}()

// forward returns the loss of a training step's forward pass.
func (x *bench) forward() float64 {
	x.tape.Reset(true)
	x.m.Loss(x.tape, x.b)
	return x.dev.Sum(&x.b.Losses)
}

func noise(step int) autograd.Noise { return autograd.Noise{Seed: 7, Step: step, Row: 48} }

// With the masks held fixed the loss is a function like any other: central differences in float64 through the whole
// model, for coordinates of every parameter. The routers' losses are no part of it.
func TestGradientsThroughMasksMatchFiniteDifferences(t *testing.T) {
	for _, c := range []Config{dropping, gemma, routed} {
		t.Run(c.Family, func(t *testing.T) {
			c.Layers, c.Dropout, c.StochasticDepth = dropping.Layers, dropping.Dropout, dropping.StochasticDepth
			c.RouterAuxLoss, c.RouterZLoss = 0, 0
			checkMaskedGradients(t, newBench(t, c, "fp64", 2, 8))
			c.Recompute = Layout{Whole: 3, Segment: 2, Attention: 1}
			checkMaskedGradients(t, newBench(t, c, "fp64", 2, 8))
		})
	}
}

func checkMaskedGradients(t *testing.T, x *bench) {
	for step := 1; step <= 2; step++ {
		x.b.Seq.Noise = noise(step)
		x.gradients()
		grads := make([][]float64, len(x.m.Params()))
		for i, p := range x.m.Params() {
			grads[i] = make([]float64, p.Value.Len())
			if p.HasGrad() { // else its branch was dropped: nothing was written
				copy(grads[i], p.Grad.F64())
			}
		}
		const eps = 1e-5
		for i, p := range x.m.Params() {
			w, g := p.Value.F64(), grads[i]
			rng := tensor.NewRNG(3, tensor.PurposeData, uint32(i))
			for n := range uint64(3) {
				j := int(rng.Uint32(n)) % len(w)
				at := w[j]
				w[j] = at + eps
				up := x.forward()
				w[j] = at - eps
				down := x.forward()
				w[j] = at
				want, got := (up-down)/(2*eps), g[j]
				if math.Abs(got-want) > 1e-6*(1+math.Abs(want)) {
					t.Errorf("step %d, %s[%d]: gradient %v, finite difference %v", step, p.Name, j, got, want)
				}
			}
		}
	}
}

// Every precision has the gradients of float64, up to its rounding, also through norms after a branch and through
// experts, with dropout. FP8 is left out: its rounding is too coarse for so small a model.
func TestGradientsOfEveryPrecisionAreNearThoseOfFP64(t *testing.T) {
	for _, c := range []Config{dropping, gemma, routed} {
		c.Layers, c.Dropout, c.StochasticDepth = 3, 0.2, 0.3
		c.Experts, c.ExpertsPerToken = min(c.Experts, 2), min(c.Experts, 2) // rounding cannot change a choice
		exact := newBench(t, c, "fp64", 2, 8)
		exact.b.Seq.Noise = noise(1)
		exact.gradients()
		for _, policy := range precision.Names() {
			if policy == "fp8" {
				continue
			}
			x := newBench(t, c, policy, 2, 8)
			x.b.Seq.Noise = noise(1)
			x.gradients()
			for i, p := range x.m.Params() {
				dot, a, b := 0.0, 0.0, 0.0
				for j, want := range exact.m.Params()[i].Grad.F64() {
					got := p.Grad.Float64(j)
					dot, a, b = dot+got*want, a+got*got, b+want*want
				}
				if p.HasGrad() && b > 0 && !(math.Abs(dot/b-1) < 0.1 && dot > 0.95*math.Sqrt(a*b)) {
					t.Errorf("%s %s: %s: cosine %v, length %v of that in fp64", c.Family, policy, p.Name,
						dot/math.Sqrt(a*b), math.Sqrt(a/b))
				}
			}
		}
	}
}

// What is dropped depends on seed, step and place alone: recomputation finds the same, in every precision.
func TestRecomputationFindsTheSameMasks(t *testing.T) {
	for _, policy := range precision.Names() {
		plain := newBench(t, dropping, policy, 2, 8)
		var want [][]byte
		for step := range 4 {
			plain.b.Seq.Noise = noise(step)
			want = append(want, plain.bits())
			if step > 0 && bytes.Equal(want[step], want[step-1]) {
				t.Errorf("%s: steps %d and %d drop the same", policy, step-1, step)
			}
		}
		for _, l := range []Layout{
			{Whole: 4, Segment: 1}, {Whole: 4, Segment: 2}, {Whole: 3, Segment: 3}, {Attention: 5},
			{Whole: 2, Segment: 2, Attention: 2},
		} {
			c := dropping
			c.Recompute = l
			x := newBench(t, c, policy, 2, 8)
			for step := range want {
				x.b.Seq.Noise = noise(step)
				if !bytes.Equal(x.bits(), want[step]) {
					t.Errorf("%s, step %d: %+v gives other bits than none", policy, step, l)
				}
			}
		}
	}
}

// A forward pass that is no training is that of the model without dropout, to the bit.
func TestEvaluationDropsNothing(t *testing.T) {
	plain, x := newBench(t, deep, "bf16", 2, 8), newBench(t, dropping, "bf16", 2, 8)
	plain.loss()
	for step := range 3 {
		x.b.Seq.Noise = noise(step)
		x.loss()
		if !bytes.Equal(x.b.Losses.Raw(), plain.b.Losses.Raw()) {
			t.Errorf("step %d: losses differ from those of the model without dropout", step)
		}
	}
	x.forward()
	if bytes.Equal(x.b.Losses.Raw(), plain.b.Losses.Raw()) {
		t.Error("training drops nothing")
	}
}

// Elements of a token are the same whether it comes in a micro-batch of two rows or of one.
func TestDropoutDoesNotDependOnTheMicroBatch(t *testing.T) {
	c := dropping
	c.StochasticDepth = 0
	both, one := newBench(t, c, "fp64", 2, 8), newBench(t, c, "fp64", 1, 8)
	both.b.Seq.Noise = noise(1)
	both.forward()
	for row := range 2 {
		copy(one.b.Tokens.I32(), both.b.Tokens.I32()[8*row:])
		copy(one.b.Targets.I32(), both.b.Targets.I32()[8*row:])
		one.b.Seq.Noise = noise(1)
		one.b.Seq.Noise.Row += 8 * row
		one.forward()
		for i, got := range one.b.Losses.F64() {
			if want := both.b.Losses.F64()[8*row+i]; math.Abs(got-want) > 1e-12 {
				t.Errorf("row %d, token %d: loss %v alone, %v in a batch of two", row, i, got, want)
			}
		}
	}
}

// The share of steps in which a branch is dropped is that of the linear rule, layer by layer, within five standard
// deviations.
func TestBranchesAreDroppedAtTheLinearRate(t *testing.T) {
	const steps = 20000
	x := newBench(t, dropping, "fp32", 1, 8)
	x.tape.Reset(true)
	for l, b := range x.m.blocks {
		want := float64(l+1) / float64(dropping.Layers) * dropping.StochasticDepth
		attention, mlp, either := 0, 0, 0
		for step := range steps {
			x.b.Seq.Noise = noise(step)
			a, m := x.tape.Dropped(b.branches[0].drop, &x.b.Seq), x.tape.Dropped(b.branches[1].drop, &x.b.Seq)
			if a {
				attention++
			}
			if m {
				mlp++
			}
			if a || m {
				either++
			}
		}
		for _, c := range []struct {
			what string
			n    int
			want float64
		}{{"attention", attention, want}, {"feed-forward", mlp, want}, {"either", either, 1 - (1-want)*(1-want)}} {
			got := float64(c.n) / steps
			if math.Abs(got-c.want) > 5*math.Sqrt(c.want*(1-c.want)/steps) {
				t.Errorf("layer %d: %s dropped in %.4f of the steps, want %.4f", l, c.what, got, c.want)
			}
		}
	}
}

// Over all draws of its elements and of itself a branch adds what evaluation adds: with one layer whose feed-forward
// branch is zero, the mean of the residual stream before the final norm is that of evaluation.
func TestTheMeanOverMasksIsTheWholeBranch(t *testing.T) {
	c := small
	c.Layers, c.Dropout, c.StochasticDepth = 1, 0, 0
	x := newBench(t, c, "fp64", 1, 8)
	b := x.m.blocks[0]
	clear(b.branches[1].out.Value.F64())
	stream := func() []float64 {
		s := x.tape.Embedding(&x.m.embed.Param, &x.b.Tokens)
		return x.tape.Block(b, s, &x.b.Seq).Value.F64()
	}
	x.tape.Reset(false)
	want := append([]float64(nil), stream()...)
	x.tape.Reset(false)
	start := append([]float64(nil), x.tape.Embedding(&x.m.embed.Param, &x.b.Tokens).Value.F64()...)

	x.m.drop(0.3, 0.4)
	const steps = 20000
	sum := make([]float64, len(want))
	for step := range steps {
		x.b.Seq.Noise = noise(step)
		x.tape.Reset(true)
		for i, v := range stream() {
			sum[i] += v
		}
	}
	for i := range want {
		branch := want[i] - start[i]
		p := 0.7 * 0.6                                           // an element stays and its branch stays
		deviation := math.Abs(branch) * math.Sqrt((1-p)/p/steps) // of the mean of branch/p with probability p
		if got := sum[i]/steps - start[i]; math.Abs(got-branch) > 5*deviation+1e-4*math.Abs(branch) {
			t.Errorf("element %d: the branch adds %v on average, %v in evaluation", i, got, branch)
		}
	}
}

func TestDroppingStepAllocatesNothingAndIsMeasured(t *testing.T) {
	for _, policy := range precision.Names() {
		c := dropping
		c.StochasticDepth = 1e-9 // scaled, but never dropped
		c.Recompute = Layout{Whole: 2, Segment: 1, Attention: 1}
		x := newBench(t, c, policy, 2, 8)
		x.b.Seq.Noise = noise(1)
		x.gradients()
		if got := x.peaks(); got != x.foot {
			t.Errorf("%s: a step used %+v, measured %+v", policy, got, x.foot)
		}
		if n := filetest.AllocsPerRun(10, x.gradients); n != 0 {
			t.Errorf("%s: %v allocations per forward and backward pass", policy, n)
		}
	}
}
