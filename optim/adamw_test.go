package optim

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"testing"

	"anneal/internal/isa"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// fixture is ten steps of torch.optim.AdamW and clips of torch.nn.utils.clip_grad_norm_ (testdata/make_adamw.py).
type fixture struct {
	Start     []float64
	Gradients [][]float64 // [step][element]
	Sets      []struct {
		Name              string
		GradScale         float64 `json:"grad_scale"`
		LR                float64
		Beta1, Beta2, Eps float64
		WeightDecay       float64 `json:"weight_decay"`
		Float64, Float32  struct {
			Weights [][]float64 // after each step
			M, V    []float64   // after the last
		}
	}
	Clips []struct {
		Name        string
		MaxNorm     float64 `json:"max_norm"`
		Grads       [][]float64
		TotalNorm   float64 `json:"total_norm"`
		Coefficient float64
		Clipped     [][]float64
	}
}

func load(t *testing.T) fixture {
	t.Helper()
	data, err := os.ReadFile("testdata/adamw.json")
	if err != nil {
		t.Fatal(err)
	}
	var f fixture
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Sets) == 0 || len(f.Clips) == 0 {
		t.Fatal("testdata/adamw.json is empty")
	}
	return f
}

func TestAdamWMatchesPyTorch(t *testing.T) {
	f := load(t)
	each(t, func(t *testing.T, tier isa.Tier, dtype tensor.DType) {
		for _, c := range f.Sets {
			want, relative, absolute := c.Float64, 1e-10, 1e-14
			if dtype == tensor.F32 {
				want, relative, absolute = c.Float32, 1e-5, 1e-6
			}
			x := newParameter(t, tier, dtype, AdamW{Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Eps}, f.Start)
			for step, g := range f.Gradients {
				x.step(times(c.GradScale, g), Step{T: step + 1, LR: c.LR, Decay: c.WeightDecay})
				near(t, fmt.Sprintf("%s: step %d: weights", c.Name, step+1), &x.Value, want.Weights[step],
					relative, absolute)
			}
			// Moments of tiny gradients are tiny, and sums that cancel are rounded at the size of their terms.
			near(t, c.Name+": m", &x.state[0].Tensor, want.M, relative, relative*c.GradScale)
			near(t, c.Name+": v", &x.state[1].Tensor, want.V, relative, 0)
		}
	})
}

// OPT-4: whatever a gradient's size, the first update is the learning rate against its sign.
func TestFirstStepIsTheLearningRate(t *testing.T) {
	each(t, func(t *testing.T, tier isa.Tier, dtype tensor.DType) {
		gradient := []float64{1e-3, -1e-2, 0.5, -3, 1e3, -1e6}
		x := newParameter(t, tier, dtype, AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-10}, make([]float64, len(gradient)))
		x.step(gradient, Step{T: 1, LR: 0.02})
		near(t, "weights", &x.Value, []float64{-0.02, 0.02, -0.02, 0.02, -0.02, 0.02}, 1e-6, 0)
	})
}

// OPT-5: a factor on all gradients, given in them or as scale, leaves the weights as they are where ε is small.
func TestUpdatesDoNotDependOnTheGradientsScale(t *testing.T) {
	f := load(t)
	each(t, func(t *testing.T, tier isa.Tier, dtype tensor.DType) {
		run := func(inGradient, asScale float64) *parameter {
			x := newParameter(t, tier, dtype, AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-12}, f.Start)
			for step, g := range f.Gradients {
				fill(&x.Grad, g, inGradient)
				x.opt.Update(x.dev, &x.Param, x.state, Step{T: step + 1, LR: 1e-2, Decay: 0.1, Scale: asScale}, nil)
			}
			return x
		}
		want := make([]float64, len(f.Start))
		one := run(1, 1)
		for i := range want {
			want[i] = one.Value.Float64(i)
		}
		near(t, "gradients × 1000", &run(1000, 1).Value, want, 0, 1e-6)
		near(t, "scale 1/1000", &run(1, 1e-3).Value, want, 0, 1e-6)
	})
}

func TestClipScaleMatchesPyTorch(t *testing.T) {
	for _, c := range load(t).Clips {
		scale := ClipScale(c.TotalNorm, c.MaxNorm)
		if math.Abs(scale-c.Coefficient) > 1e-14 {
			t.Errorf("%s: norm %v, limit %v: scale %v, want %v", c.Name, c.TotalNorm, c.MaxNorm, scale, c.Coefficient)
		}
		for k, g := range c.Grads {
			for i, v := range g {
				if want := c.Clipped[k][i]; math.Abs(v*scale-want) > 1e-14 {
					t.Errorf("%s: gradient %d[%d] becomes %v, want %v", c.Name, k, i, v*scale, want)
				}
			}
		}
	}
}

func TestClippedNormIsNeverAboveTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		norm := rapid.Float64Range(0, 1e30).Draw(t, "norm")
		limit := rapid.Float64Range(1e-6, 1e6).Draw(t, "limit")
		scale := ClipScale(norm, limit)
		if scale*norm > limit*(1+1e-15) || scale > 1 {
			t.Fatalf("norm %v, limit %v: scale %v gives %v", norm, limit, scale, scale*norm)
		}
		if off := ClipScale(norm, 0); off != 1 {
			t.Fatalf("limit 0 scales norm %v by %v, want no clipping", norm, off)
		}
	})
}
