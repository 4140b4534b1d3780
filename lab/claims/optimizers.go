package claims

import (
	"context"
	"fmt"
	"math"
	"slices"

	"anneal/optim"
	"anneal/train"
)

// optimizerClaims are about the state of optimizers and the effect of updates.
func optimizerClaims() []Claim {
	return []Claim{lionMemory(), adafactorMemory(), adam8bitMemory(), muonOrder(), decoupled()}
}

// optimizerState returns the bytes of state that an optimizer keeps for each parameter of a layer of LLaMA 2 7B, from
// plans with different numbers of layers.
func optimizerState(overrides ...string) (float64, error) {
	var state, params [2]float64
	for i, layers := range []string{"model.layers=2", "model.layers=4"} {
		p, err := planOf("", slices.Concat(seven, overrides, []string{layers})...)
		if err != nil {
			return 0, err
		}
		state[i], params[i] = float64(p.Memory.Bytes(train.OptimizerState)), float64(p.Parameters)
	}
	return (state[1] - state[0]) / (params[1] - params[0]), nil
}

func lionMemory() Claim {
	return Claim{
		Number: 13, Seconds: 1,
		Says:   "Lion needs a third of AdamW's memory for its state.",
		Source: "guides after Chen et al. 2023, arXiv 2302.06675, whose own claim is half",
		How:    "the state that both allocate for a layer of LLaMA 2 7B, counted by running their code without memory",
		Rule:   "holds if AdamW's state is 2.7 times Lion's or more",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			adamw, err := optimizerState("optimizer.name=adamw")
			if err != nil {
				return nil, err
			}
			lion, err := optimizerState("optimizer.name=lion")
			return []Figure{
				{"AdamW", adamw, "B/parameter"},
				{"Lion", lion, "B/parameter"},
				{"with weights and gradients", (adamw + 8) / (lion + 8), "times"},
			}, err
		},
		Judge: func(f *Figures) Verdict {
			ratio := f.Of("AdamW") / f.Of("Lion")
			return choose(ratio >= 2.7, fmt.Sprintf("AdamW keeps %s, Lion %s: %.2f times less, and %s counting "+
				"FP32 weights and gradients.", f.Text("AdamW"), f.Text("Lion"), ratio,
				f.Text("with weights and gradients")))
		},
	}
}

func adafactorMemory() Claim {
	return Claim{
		Number: 14, Seconds: 1,
		Says:   "Adafactor keeps about 4 bytes for each parameter.",
		Source: "guides after Shazeer & Stern 2018, arXiv 1804.04235",
		How:    "the state that it allocates for a layer of LLaMA 2 7B, without momentum (T5's default) and with",
		Rule:   "holds if it keeps 3.5 to 4.5 bytes without momentum; holds when momentum is on if only then",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			plain, err := optimizerState("optimizer.name=adafactor")
			if err != nil {
				return nil, err
			}
			momentum, err := optimizerState("optimizer.name=adafactor", "optimizer.beta1=0.9")
			return []Figure{{"without momentum", plain, "B/parameter"}, {"with momentum", momentum, "B/parameter"}}, err
		},
		Judge: func(f *Figures) Verdict {
			plain, momentum := f.Of("without momentum"), f.Of("with momentum")
			why := fmt.Sprintf("It keeps %s without momentum and %s with it.", f.Text("without momentum"),
				f.Text("with momentum"))
			if !near(plain, 4, 0.125) && near(momentum, 4, 0.125) {
				return when("momentum is on", why)
			}
			return choose(near(plain, 4, 0.125), why)
		},
	}
}

func adam8bitMemory() Claim {
	return Claim{
		Number: 15, Seconds: 1,
		Says:   "Adam with moments of 8 bits keeps 2 bytes for each parameter.",
		Source: "Dettmers et al. 2021, arXiv 2110.02861",
		How:    "the state that it allocates for a layer of LLaMA 2 7B, codes and scales",
		Rule:   "holds if it keeps 2.0 to 2.1 bytes",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			state, err := optimizerState("optimizer.name=adam8bit")
			return []Figure{{"8-bit Adam", state, "B/parameter"}}, err
		},
		Judge: func(f *Figures) Verdict {
			x := f.Of("8-bit Adam")
			return choose(x >= 2 && x <= 2.1, fmt.Sprintf("It keeps %s, with the scales of its blocks.",
				f.Text("8-bit Adam")))
		},
	}
}

func muonOrder() Claim {
	return Claim{
		Number: 17, Seconds: 1,
		Says:   "Muon applies Nesterov's momentum to orthogonalised gradients.",
		Source: "guides; Jordan et al. 2024, kellerjordan.github.io/posts/muon, orthogonalise last",
		How: "ten updates of a 64×64 matrix by random gradients: how far O·Oᵀ of the last update is from the " +
			"identity, for optim.Muon and for momentum over gradients that are orthogonalised first",
		Rule: "holds if the last update is no nearer to orthogonal than that of the other order",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			ours, other, err := muonOrders()
			return []Figure{{"off orthogonal, Muon", ours, ""}, {"off orthogonal, momentum last", other, ""}}, err
		},
		Judge: func(f *Figures) Verdict {
			ours, other := f.Of("off orthogonal, Muon"), f.Of("off orthogonal, momentum last")
			return choose(ours >= 0.9*other, fmt.Sprintf("Muon's update is off by %.2f, momentum over "+
				"orthogonalised gradients by %.2f: momentum comes first.", ours, other))
		},
	}
}

func decoupled() Claim {
	return Claim{
		Number: 18, Seconds: 1,
		Says: "AdamW decays all weights alike; Adam with L2 in the gradient decays weights with large gradients " +
			"less.",
		Source: "Loshchilov & Hutter 2017, arXiv 1711.05101",
		How: "two weights of 1 with gradients of ±0.01 and ±10, 200 updates with and without decay: how much decay " +
			"takes off",
		Rule: "holds if AdamW takes the same off both within 1 % and Adam at least twice as much off that with " +
			"small gradients",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			var list []Figure
			for _, o := range []struct {
				name string
				rule optim.Optimizer
			}{{"AdamW", optim.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}},
				{"Adam", optim.Adam{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}}} {
				off, err := decayed(o.rule)
				if err != nil {
					return nil, err
				}
				list = append(list, Figure{o.name + ", small gradients", off[0], ""},
					Figure{o.name + ", large gradients", off[1], ""})
			}
			return list, nil
		},
		Judge: func(f *Figures) Verdict {
			alike := near(f.Of("AdamW, small gradients"), f.Of("AdamW, large gradients"), 0.01)
			return choose(alike && f.Of("Adam, small gradients") >= 2*math.Abs(f.Of("Adam, large gradients")),
				fmt.Sprintf(
					"AdamW takes %.3f off the weight with small gradients and %.3f off the other, Adam %.3f and %.5f.",
					f.Of("AdamW, small gradients"), f.Of("AdamW, large gradients"), f.Of("Adam, small gradients"),
					f.Of("Adam, large gradients")))
		},
	}
}
