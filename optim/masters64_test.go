package optim

import (
	"bytes"
	"math"
	"testing"

	"anneal/device/cpu"
	"anneal/nn"
	"anneal/tensor"
)

func room(t *testing.T) *tensor.Arena {
	t.Helper()
	a, err := tensor.NewArena("test", 1<<17)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// Updates of 10⁻⁹ of a weight are below half of its last place in FP32, and are lost there; masters add them up.
func TestMastersKeepWhatFP32Loses(t *testing.T) {
	const steps, rate = 1000, 1e-9
	for _, kept := range []bool{false, true} {
		dev, err := cpu.New(1)
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		state, scratch := room(t), room(t)
		p := &nn.Param{}
		p.Value, p.Grad = *tensor.Of([]float32{1, -1, 1}), *tensor.Of([]float32{3, -2, 1})
		rule := Optimizer(AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-12})
		if kept {
			rule = &Masters64{Optimizer: rule}
		}
		s := rule.Layout(state, p)
		for n := range steps {
			rule.Update(dev, p, s, Step{T: n + 1, LR: rate, Scale: 1}, scratch)
		}
		for i, was := range []float64{1, -1, 1} {
			want := was // of a constant gradient, Adam's update is the rate
			if kept {
				want -= was * steps * rate
			}
			if got := p.Value.Float64(i); got != float64(float32(want)) {
				t.Errorf("masters %v: weight %d is %.9f, want %.9f", kept, i, got, want)
			}
		}
	}
}

// Masters and moments are those of the rule in FP64, bit for bit, and weights are masters rounded to nearest.
func TestMastersAreTheRuleInFP64(t *testing.T) {
	dev, err := cpu.New(2)
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	const n = 1000
	rule := AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}
	masters := &Masters64{Optimizer: rule}
	state, scratch := room(t), room(t)
	narrow, wide := &nn.Param{}, &nn.Param{}
	narrow.Value, narrow.Grad = *tensor.Of(make([]float32, n)), *tensor.Of(make([]float32, n))
	wide.Value, wide.Grad = *tensor.Of(make([]float64, n)), *tensor.Of(make([]float64, n))
	for i := range n {
		narrow.Value.F32()[i] = float32(math.Sin(float64(i)))
		wide.Value.F64()[i] = float64(narrow.Value.F32()[i])
	}
	a, b := masters.Layout(state, narrow), rule.Layout(state, wide)
	for step := range 20 {
		for i := range n {
			narrow.Grad.F32()[i] = float32(math.Cos(float64(i * (step + 1))))
			wide.Grad.F64()[i] = float64(narrow.Grad.F32()[i])
		}
		s := Step{T: step + 1, LR: 1e-3, Decay: 0.1, Scale: 0.3}
		masters.Update(dev, narrow, a, s, scratch)
		rule.Update(dev, wide, b, s, scratch)
	}
	if !bytes.Equal(a[0].Raw(), wide.Value.Raw()) || !bytes.Equal(a[1].Raw(), b[0].Raw()) ||
		!bytes.Equal(a[2].Raw(), b[1].Raw()) {
		t.Error("other masters or moments than in FP64")
	}
	for i, w := range wide.Value.F64() {
		if got := narrow.Value.F32()[i]; got != float32(w) {
			t.Fatalf("weight %d is %v, want %v", i, got, float32(w))
		}
	}
}
