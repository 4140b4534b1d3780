package claims

import (
	"context"
	"fmt"

	"anneal/plan"
)

// recomputeClaims are about activations that the backward pass recomputes.
func recomputeClaims() []Claim {
	return []Claim{checkpointing(), doubled(), constantMemory(), selective()}
}

// gpt3Recomputed returns the activations in bytes and the extra operations of GPT-3 6.7B under a strategy.
func gpt3Recomputed(strategy string, overrides ...string) (kept, extra float64, err error) {
	p, err := planOf("gpt3-6.7b", append(overrides, "memory.recompute="+strategy)...)
	if err != nil {
		return 0, 0, err
	}
	extra, err = p.recomputed()
	return p.activations(), extra, err
}

func checkpointing() Claim {
	return Claim{
		Number: 3, Seconds: 1,
		Says: "Recomputing activations costs a third more operations and takes 4 to 10 times less memory for " +
			"them.",
		Source: "Chen et al. 2016, arXiv 1604.06174; Korthikanti et al. 2022, arXiv 2205.05198",
		How: "plans of GPT-3 6.7B with memory.recompute = none and every_layer, and the formula of the second " +
			"paper for attention that stores its score matrices",
		Rule: "holds if the extra operations are at most 35 % and the memory shrinks 4 to 10 times with and " +
			"without stored scores; holds when scores are not stored if only then",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			all, _, err := gpt3Recomputed("none")
			if err != nil {
				return nil, err
			}
			kept, extra, err := gpt3Recomputed("every_layer")
			stored := plan.Layer{Tokens: 2048, Context: 2048, Dim: 4096, Heads: 32, Tensor: 1}.Activations()
			return []Figure{
				{"activations, all kept", all / gigabyte, "GB"},
				{"activations, every layer again", kept / gigabyte, "GB"},
				{"less memory", all / kept, "times"},
				{"less memory of stored scores", stored.Whole / stored.Full, "times"},
				{"more operations", 100 * extra, "%"},
			}, err
		},
		Judge: func(f *Figures) Verdict {
			less, scores, cheap := f.Of("less memory"), f.Of("less memory of stored scores"),
				f.Of("more operations") <= 35
			within := func(x float64) bool { return x >= 4 && x <= 10 }
			why := fmt.Sprintf("%s more operations, and %s less memory for activations (%s instead of %s); a layer "+
				"that stores its scores shrinks %s.", f.Text("more operations"), f.Text("less memory"),
				f.Text("activations, every layer again"), f.Text("activations, all kept"),
				f.Text("less memory of stored scores"))
			if cheap && within(less) && !within(scores) {
				return when("attention does not store its scores: with them it saves more", why)
			}
			return choose(cheap && within(less), why)
		},
	}
}

func doubled() Claim {
	return Claim{
		Number: 4, Seconds: 1,
		Says: "Recomputing every layer doubles the operations of training, and checkpoints every √L layers make " +
			"them 1.5 times as many.",
		Source: "tutorials on activation checkpointing",
		How:    "operations of GPT-3 6.7B (32 layers) with memory.recompute = every_layer and sqrt",
		Rule:   "holds if the factors are within 0.1 of 2 and 1.5",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			_, every, err := gpt3Recomputed("every_layer")
			if err != nil {
				return nil, err
			}
			_, root, err := gpt3Recomputed("sqrt")
			return []Figure{{"every layer", 1 + every, "times"}, {"every √L layers", 1 + root, "times"}}, err
		},
		Judge: func(f *Figures) Verdict {
			return choose(near(f.Of("every layer"), 2, 0.05) && near(f.Of("every √L layers"), 1.5, 0.0667),
				fmt.Sprintf("Training takes %s the operations with every layer recomputed, and %s with segments of "+
					"√L: only the forward pass, a third of it, is repeated.", f.Text("every layer"),
					f.Text("every √L layers")))
		},
	}
}

func constantMemory() Claim {
	return Claim{
		Number: 5, Seconds: 1,
		Says:   "With every layer recomputed, memory for activations does not depend on the number of layers.",
		Source: "tutorials on activation checkpointing",
		How:    "activations of GPT-3 6.7B with 32 and 64 layers, memory.recompute = every_layer",
		Rule:   "holds if twice the layers take less than 1.1 times the memory",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			few, _, err := gpt3Recomputed("every_layer", "model.layers=32")
			if err != nil {
				return nil, err
			}
			many, _, err := gpt3Recomputed("every_layer", "model.layers=64")
			return []Figure{
				{"32 layers", few / gigabyte, "GB"},
				{"64 layers", many / gigabyte, "GB"},
				{"of another layer", (many - few) / 32 / 1e6, "MB"},
			}, err
		},
		Judge: func(f *Figures) Verdict {
			growth := f.Of("64 layers") / f.Of("32 layers")
			return choose(growth < 1.1, fmt.Sprintf("32 layers keep %s, 64 keep %s: %.2f times, %s for the input "+
				"of each further layer.", f.Text("32 layers"), f.Text("64 layers"), growth, f.Text("of another layer")))
		},
	}
}

func selective() Claim {
	return Claim{
		Number: 6, Seconds: 1,
		Says:   "Recomputing attention alone makes training 1.3 times as many operations.",
		Source: "tutorials; Korthikanti et al. 2022, arXiv 2205.05198, give 1.6 to 2.7 %",
		How: "operations of GPT-3 175B with the attention of each layer recomputed: with its products with " +
			"weights, as memory.recompute does, and of the scores alone, as in the paper",
		Rule: "holds if the factor is at least 1.2",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			p, err := planOf("gpt3-175b", "memory.recompute=selective")
			if err != nil {
				return nil, err
			}
			extra, err := p.recomputed()
			if err != nil {
				return nil, err
			}
			m := p.cfg.Model
			// Scores and their product with the values: 4·T·D operations a token and layer forward, half of it causal.
			scores := 2 * float64(m.Context) * float64(m.Dim) * float64(m.Layers)
			return []Figure{
				{"with products", 1 + extra, "times"},
				{"scores alone", 1 + scores/p.FLOPsPerToken, "times"},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			return choose(f.Of("with products") >= 1.2, fmt.Sprintf("%s the operations with its products, %s for "+
				"scores alone.", f.Text("with products"), f.Text("scores alone")))
		},
	}
}
