package optim

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"anneal/internal/isa"
	"anneal/tensor"
)

// originals is ten steps of each optimizer by its original implementation (testdata/make_optimizers.py).
type originals struct {
	Shape     []int
	Start     []float64
	Gradients [][]float64 // [step][element]
	Cases     []struct {
		Optimizer, Name string
		Constants       struct {
			constants
			LR          float64
			WeightDecay float64 `json:"weight_decay"`
			Vector      bool    // the parameter is one, not a matrix
		}
		Weights [][]float64 // after each step
	}
}

type constants struct {
	Momentum, Dampening                   float64
	Nesterov                              bool
	Beta1, Beta2, Beta3, Alpha, Eps, Ramp float64
	RelativeStep                          bool `json:"relative_step"`
	Unscaled                              bool
}

func (c constants) optimizer(name string) Optimizer {
	switch name {
	case "sgd":
		return SGD{Momentum: c.Momentum, Dampening: c.Dampening, Nesterov: c.Nesterov}
	case "adam":
		return Adam{Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Eps}
	case "adamw", "cautious":
		return AdamW{Beta1: c.Beta1, Beta2: c.Beta2, Eps: c.Eps}
	case "lion":
		return Lion{Beta1: c.Beta1, Beta2: c.Beta2}
	case "ademamix":
		return AdEMAMix{Beta1: c.Beta1, Beta2: c.Beta2, Beta3: c.Beta3, Alpha: c.Alpha, Eps: c.Eps, Ramp: int(c.Ramp)}
	case "adafactor":
		return &Adafactor{Beta1: c.Beta1, RelativeStep: c.RelativeStep, Unscaled: c.Unscaled}
	}
	panic("no optimizer " + name)
}

func TestTenStepsMatchTheOriginals(t *testing.T) {
	data, err := os.ReadFile("testdata/optimizers.json")
	if err != nil {
		t.Fatal(err)
	}
	var f originals
	if err := json.Unmarshal(data, &f); err != nil || len(f.Cases) == 0 {
		t.Fatalf("testdata/optimizers.json has %d cases, %v", len(f.Cases), err)
	}
	each(t, func(t *testing.T, tier isa.Tier, dtype tensor.DType) {
		relative, absolute := 1e-10, 1e-13
		if dtype == tensor.F32 {
			relative, absolute = 1e-5, 1e-6
		}
		for _, c := range f.Cases {
			shape := f.Shape
			if c.Constants.Vector {
				shape = []int{len(f.Start)}
			}
			x := newParameter(t, tier, dtype, c.Constants.optimizer(c.Optimizer), f.Start, shape...)
			for i, g := range f.Gradients {
				x.step(g, Step{
					T: i + 1, LR: c.Constants.LR, Decay: c.Constants.WeightDecay, Cautious: c.Optimizer == "cautious",
				})
				near(t, fmt.Sprintf("%s, %s: step %d: weights", c.Optimizer, c.Name, i+1), &x.Value, c.Weights[i],
					relative, absolute)
			}
		}
	})
}

// Three steps on a small matrix by other code than ours, as tables of the formulas' values (float64).
func TestThreeStepsMatchTheFormulas(t *testing.T) {
	start := []float64{0.5, -1, 2, -0.25, 1.5, -3}
	gradients := [][]float64{{.1, -.2, .3, .4, -.5, .6}, {-.3, .1, .2, -.6, .05, 0}, {.02, .4, -.1, .3, .7, -.9}}
	adam := constants{Beta1: .9, Beta2: .95, Eps: 1e-8}
	for _, c := range []struct {
		name      string
		optimizer Optimizer
		decay     float64
		want      []float64
	}{
		{"sgd", SGD{}, 0, []float64{.5018, -1.003, 1.996, -.251, 1.4975, -2.997}},
		{"momentum", SGD{Momentum: .9}, 0, []float64{.50279, -1.00048, 1.98907, -.25244, 1.5056, -3.00726}},
		{"nesterov", SGD{Momentum: .9, Nesterov: true}, 0,
			[]float64{.504311, -1.003432, 1.986163, -.253196, 1.50254, -3.003534}},
		{"momentum with decay", SGD{Momentum: .9}, .1,
			[]float64{.4999881985, -.994881397, 1.977872995, -.25102950375, 1.4971737035, -2.990421603}},
		{"adam", adam.optimizer("adam"), 0,
			[]float64{.498311492537, -.991824533526, 1.974649409806, -.258224411171, 1.513500230820, -3.014364527704}},
		{"adam with decay", adam.optimizer("adam"), .1,
			[]float64{.493685659993, -.984133353280, 1.971450404716, -.257195337420, 1.507124127269, -3.003420552005}},
		{"adamw", adam.optimizer("adamw"), .1,
			[]float64{.496828089077, -.988850206219, 1.968685148592, -.257457636052, 1.508978738397, -3.005346748227}},
		{"lion", Lion{.9, .99}, .1, []float64{.4885114895, -1.007012989, 1.984035988, -.25924075975, 1.4854945085,
			-3.000979007}},
		{"adafactor", &Adafactor{RelativeStep: true}, 0,
			[]float64{.507171013728, -1.020848279086, 1.970977102656, -.258096042620, 1.495011902592, -2.994902885640}},
		{"adafactor, absolute rate", &Adafactor{Unscaled: true}, 0,
			[]float64{.504302236530, -1.012541408979, 1.982543163605, -.254887228991, 1.496999250169, -2.996931716839}},
		{"adafactor, momentum", &Adafactor{RelativeStep: true, Beta1: .9}, 0,
			[]float64{.500672191605, -1.000303180567, 1.992441203687, -.252056229476, 1.502136546416, -3.002252521892}},
		{"ademamix", AdEMAMix{Beta1: .9, Beta2: .999, Beta3: .9999, Alpha: 5, Eps: 1e-8}, .1,
			[]float64{.496871882548, -.988933119819, 1.968789206885, -.257447791123, 1.508892412381, -3.005246773833}},
	} {
		x := newParameter(t, isa.Generic, tensor.F64, c.optimizer, start, 2, 3)
		for i, g := range gradients {
			x.step(g, Step{T: i + 1, LR: 0.01, Decay: c.decay})
		}
		near(t, c.name, &x.Value, c.want, 0, 6e-13)
	}
}
