package model

import (
	"math"
	"testing"

	"anneal/device"
	"anneal/precision"
	"anneal/tensor"
)

// taught gives a bench lessons of k tokens from a teacher of the same shape with other weights.
func (x *bench) taught(t *testing.T, k int, temperature, weight float64) *Decoder {
	t.Helper()
	p, err := precision.Lookup("fp64")
	if err != nil {
		t.Fatal(err)
	}
	lessons, err := tensor.NewArena("lessons", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lessons.Close() })
	weights, err := tensor.NewArena("teacher", x.foot.Params)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { weights.Close() })
	teacher := New(x.m.Config, MemoryOf(device.Host{}, p, weights, nil))
	teacher.Init(7)
	for _, w := range teacher.Params() { // likelier tokens than those of a fresh model
		if w == teacher.embed {
			for i, v := range w.Value.F64() {
				w.Value.F64()[i] = 20 * v
			}
		}
	}
	x.b.Teacher = NewTeacher(lessons, p, x.b.Tokens.Len(), k)
	x.b.Teacher.Temperature, x.b.Teacher.Weight = temperature, weight
	return teacher
}

// Gradients of distillation are those of the loss (1−α)·CE + α·τ²·KL, by central differences in float64 through the
// whole model, with a soft-cap and the z-loss. Without lessons, a weight or a recorded step nothing changes.
func TestDistillationMatchesFiniteDifferences(t *testing.T) {
	for _, c := range []struct {
		k                            int
		temperature, weight, softcap float64
	}{{5, 1, 0.5, 0}, {5, 2, 1, 0}, {1, 0.5, 0.3, 3}, {small.Vocab, 1.5, 0.7, 0}} {
		cfg := small
		cfg.LogitSoftcap = c.softcap
		x := newBench(t, cfg, "fp64", 2, 8)
		teacher := x.taught(t, c.k, c.temperature, c.weight)
		plain := x.loss()
		teacher.Teach(x.tape, x.b)
		if got := x.loss(); got != plain {
			t.Errorf("%+v: a teacher changes the cross-entropy of an evaluation from %v to %v", c, plain, got)
		}
		x.gradients()
		first := append([]float64(nil), x.b.Teacher.KL.F64()...)
		if first[1] != 0 || first[2] <= 0 {
			t.Errorf("%+v: the divergence of an ignored target is %v, of another %v", c, first[1], first[2])
		}
		sum := func() float64 { // of what the gradients are of
			x.tape.Reset(true)
			for _, p := range x.m.Params() {
				p.ResetGrad()
			}
			x.m.Loss(x.tape, x.b)
			ce, kl := x.dev.Sum(&x.b.Losses), x.dev.Sum(x.b.Teacher.KL)
			return (1-c.weight)*ce + c.weight*c.temperature*c.temperature*kl
		}
		grads := map[string][]float64{}
		for _, p := range x.m.Params() {
			grads[p.Name] = append([]float64(nil), p.Grad.F64()...)
		}
		for i, p := range x.m.Params() {
			rng := tensor.NewRNG(3, tensor.PurposeData, uint32(i))
			for n := range uint64(6) {
				w := p.Value.F64()
				j := int(rng.Uint32(n)) % len(w)
				const eps = 1e-5
				at := w[j]
				w[j] = at + eps
				up := sum()
				w[j] = at - eps
				down := sum()
				w[j] = at
				if want, got := (up-down)/(2*eps), grads[p.Name][j]; math.Abs(got-want) > 3e-6*(1+math.Abs(want)) {
					t.Errorf("%+v: %s[%d]: gradient %v, finite difference %v", c, p.Name, j, got, want)
				}
			}
		}
	}
}

// A model that is its own teacher has nothing to learn of it: the divergence is 0, and so is its gradient, whatever k.
func TestAModelIsItsOwnTeacher(t *testing.T) {
	for _, k := range []int{1, 4, small.Vocab} {
		x := newBench(t, small, "fp64", 2, 8)
		teacher := x.taught(t, k, 2, 1)
		for i, p := range teacher.Params() {
			copy(p.Value.F64(), x.m.Params()[i].Value.F64())
		}
		teacher.Teach(x.tape, x.b)
		x.gradients()
		for i, kl := range x.b.Teacher.KL.F64() {
			if math.Abs(kl) > 1e-12 {
				t.Errorf("k = %d: divergence %d is %v", k, i, kl)
			}
		}
		for _, p := range x.m.Params() {
			for j, g := range p.Grad.F64() {
				if math.Abs(g) > 1e-12 {
					t.Fatalf("k = %d: %s[%d] has the gradient %v", k, p.Name, j, g)
				}
			}
		}
	}
}
