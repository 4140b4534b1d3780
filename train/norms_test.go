package train

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"anneal/dataset"
	"anneal/model"
	"anneal/train/traintest"
)

// The norms of layers and of groups are those of the gradients that the optimizer reads.
func TestLayerNormsAreThoseOfTheGradients(t *testing.T) {
	for _, overrides := range [][]string{
		{"train.clip=0"},
		{"precision=fp16", "train.clip=0", "model.tie_embeddings=false"},
		{"optimizer.name=muon", "train.clip=0.1"},
	} {
		cfg := smallConfig(t, traintest.Data(t), overrides...)
		cfg.Model.Vocab = 301
		src := dataset.NewRandom(301, cfg.Model.Context, 5)
		tr := trainerOf(t, cfg, 1)
		e, err := tr.Step(context.Background(), src)
		if err != nil {
			t.Fatal(err)
		}
		layers, groups, global := make([]float64, cfg.Model.Layers), map[string]float64{}, 0.0
		for _, p := range tr.Model().Params() {
			sum := 0.0
			for i := range p.Grad.Len() {
				sum += p.Grad.Float64(i) * p.Grad.Float64(i)
			}
			scale := 1 / (float64(e.Targets) * tr.tape.LossScale)
			sum *= scale * scale
			if l := model.LayerOf(p); l >= 0 {
				layers[l] += sum
			}
			groups[p.Role.String()] += sum
			global += sum
		}
		near := func(what string, got Number, want float64) {
			if math.Abs(float64(got)-math.Sqrt(want)) > 1e-6*math.Sqrt(want) || want == 0 {
				t.Errorf("%v: the norm of %s is %v, want %v", overrides, what, got, math.Sqrt(want))
			}
		}
		near("all", Number(e.GradNorm), global)
		for l, want := range layers {
			near("a layer", e.GradNorms.Layers[l], want)
		}
		if len(e.GradNorms.Groups) != len(groups) {
			t.Errorf("%v: groups %v, want %v", overrides, e.GradNorms.Groups, groups)
		}
		for name, want := range groups {
			near(name, e.GradNorms.Groups[name], want)
		}
	}
}

// A rise that stays is told of once, for the layer that has risen most; noise, single spikes and slow changes are not.
func TestRisesAreToldOfOnce(t *testing.T) {
	const layers, steps = 3, 5000
	for name, c := range map[string]struct {
		norm func(layer, step int) float64
		want []int // layers
	}{
		"noise":       {func(_, _ int) float64 { return 1 }, nil},
		"a warmup":    {func(_, step int) float64 { return 0.2 + 20*math.Exp(-float64(step)/100) }, nil},
		"a slow rise": {func(_, step int) float64 { return 1 + 3*float64(step)/steps }, nil},
		"spikes":      {func(_, step int) float64 { return 1 + 30*float64(step%300/299) }, nil},
		"no gradient": {func(layer, _ int) float64 { return float64(layer) }, nil},
		"one layer": {func(l, step int) float64 {
			return 1 + 9*float64(l%2)*min(max(float64(step-3000)/50, 0), 1)
		}, []int{1}},
		"one after another": {func(l, step int) float64 {
			return 1 + 4*float64(l)*float64((step/1000)%2)
		}, []int{2, 2}},
	} {
		r, noise := newRises(layers), rand.New(rand.NewPCG(1, 2))
		var got []int
		for step := range steps {
			for l := range layers {
				r.norms[l] = c.norm(l, step) * math.Exp(0.3*noise.NormFloat64())
			}
			if found := r.observe(); found != nil {
				got = append(got, found.Layer)
				if found.To < 1.9*found.From {
					t.Errorf("%s: from %v to %v is no rise", name, found.From, found.To)
				}
			}
		}
		if len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] {
			t.Errorf("%s: told of the layers %v, want %v", name, got, c.want)
		}
	}
}

// A step tells of the layer whose gradient has risen.
func TestAStepTellsOfARise(t *testing.T) {
	tr, src := optimizerTrainer(t, "adamw")
	steps(t, tr, src, 1)
	low := &tr.rises.layers[1]
	low.slow, low.above = mean{value: low.fast.value - 3, steps: 1000}, riseSteps-1
	low.fast.steps = 1000
	e, err := tr.Step(context.Background(), src)
	if err != nil {
		t.Fatal(err)
	}
	if e.Rise == nil || e.Rise.Layer != 1 || e.Rise.To < 2*e.Rise.From {
		t.Errorf("the step tells of %+v", e.Rise)
	}
}
