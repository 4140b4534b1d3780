package claims

import (
	"context"
	"fmt"

	"anneal/hardware"
	"anneal/plan"
	"anneal/plan/cluster"
)

// memoryClaims are about the bytes of weights, gradients and optimizer state.
func memoryClaims() []Claim {
	return []Claim{
		mixedMemory(), sevenBillion(), replicatedSeventy(), eightCards(), seventyStates(), gpt3Mesh(), sixteenBytes(),
	}
}

func mixedMemory() Claim {
	return Claim{
		Number: 1, Seconds: 1,
		Says:   "Training in BF16 with FP32 master weights takes half the memory of training in FP32.",
		Source: "Micikevicius et al. 2017, arXiv 1710.03740, as it is often retold",
		How:    "plans of LLaMA 2 7B, one sequence of 4,096 tokens, in bf16 and in fp32",
		Rule: "holds if all of the memory shrinks to 60 % or less; holds when activations outweigh the state if " +
			"only activations do; else it does not hold",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			wide, err := planOf("llama2-7b", "precision=fp32")
			if err != nil {
				return nil, err
			}
			narrow, err := planOf("llama2-7b", "precision=bf16")
			if err != nil {
				return nil, err
			}
			n := float64(wide.Parameters)
			return []Figure{
				{"state in fp32", wide.state() / n, "B/parameter"},
				{"state in bf16", narrow.state() / n, "B/parameter"},
				{"activations in fp32", wide.activations() / gigabyte, "GB"},
				{"activations in bf16", narrow.activations() / gigabyte, "GB"},
				{"all in bf16 over fp32", float64(narrow.Memory.Total()) / float64(wide.Memory.Total()), ""},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			all, kept := f.Of("all in bf16 over fp32"), f.Of("activations in bf16")/f.Of("activations in fp32")
			why := fmt.Sprintf("The state takes %s in bf16 and %s in fp32; activations shrink to %.0f %%, and all "+
				"of the memory to %.0f %%.", f.Text("state in bf16"), f.Text("state in fp32"), 100*kept, 100*all)
			if all > 0.6 && kept <= 0.6 {
				return when("activations outweigh the state", why)
			}
			return choose(all <= 0.6, why)
		},
	}
}

func sevenBillion() Claim {
	const ranks = 4
	return Claim{
		Number: 9, Seconds: 1,
		Says:   "AdamW keeps 112 GB for a model of 7 billion parameters, and four cards of 80 GB hold it with ZeRO 3.",
		Source: "Rajbhandari et al. 2019 (ZeRO), arXiv 1910.02054, applied to 7B",
		How:    "plans of LLaMA 2 7B on one rank, and on four with parallel.zero = 3 within 80 GB each",
		Rule: "holds if the state is within 5 % of 112 GB per 7 billion parameters and the plan on four cards " +
			"fits; holds when the model is smaller if only the first is true",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			alone, err := planOf("llama2-7b")
			if err != nil {
				return nil, err
			}
			shared, fit, err := onCards("llama2-7b", "parallel.zero=3", fmt.Sprint("parallel.ranks=", ranks))
			if err != nil {
				return nil, err
			}
			return []Figure{
				{"state of 7e9 parameters", alone.state() / float64(alone.Parameters) * 7, "GB"},
				{"state of a rank of four", shared.state() / gigabyte, "GB"},
				{"all of a rank of four", float64(shared.Memory.Total()) / gigabyte, "GB"},
				{"fits", truth(fit.Fits), ""},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			state := f.Of("state of 7e9 parameters")
			why := fmt.Sprintf("The state of 7 billion parameters is %s; a rank of four keeps %s of it and %s in all.",
				f.Text("state of 7e9 parameters"), f.Text("state of a rank of four"), f.Text("all of a rank of four"))
			if near(state, 112, 0.05) && f.Of("fits") == 0 {
				return when("activations leave room", why)
			}
			return choose(near(state, 112, 0.05), why)
		},
	}
}

func replicatedSeventy() Claim {
	return Claim{
		Number: 10, Seconds: 2,
		Says: "For 70 billion parameters, plain data parallelism keeps 1,120 GB on each rank, full sharding over 8 " +
			"ranks 140 GB.",
		Source: "Zhao et al. 2023 (FSDP), arXiv 2304.11277, applied to 70B",
		How:    "plans of LLaMA 2 70B on eight ranks with parallel.zero = 0 and 3, scaled to 70 billion parameters",
		Rule:   "holds if both are within 5 %",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			var list []Figure
			for zero, name := range map[int]string{0: "state of a replica", 3: "state of a rank of eight"} {
				p, err := planOf("llama2-70b", "parallel.ranks=8", fmt.Sprint("parallel.zero=", zero))
				if err != nil {
					return nil, err
				}
				list = append(list, Figure{name, p.state() / float64(p.Parameters) * 70, "GB"})
			}
			return sorted(list), nil
		},
		Judge: func(f *Figures) Verdict {
			a, b := f.Of("state of a replica"), f.Of("state of a rank of eight")
			return choose(near(a, 1120, 0.05) && near(b, 140, 0.05), fmt.Sprintf("A replica keeps %s, a rank of "+
				"eight %s.",
				f.Text("state of a replica"), f.Text("state of a rank of eight")))
		},
	}
}

func eightCards() Claim {
	return Claim{
		Number: 11, Seconds: 4,
		Says:   "Fully sharded, a 70B model can be trained on eight A100 cards of 80 GB.",
		Source: "guides to FSDP",
		How: "the plan of LLaMA 2 70B with parallel.zero = 3 on eight ranks within 80 GB, and the fewest cards " +
			"that fit",
		Rule: "holds if the plan on eight cards fits; holds when there are N cards if the state alone fits in eight",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			p, fit, err := onCards("llama2-70b", "parallel.ranks=8", "parallel.zero=3")
			if err != nil {
				return nil, err
			}
			least := fit.Least
			if least == nil {
				least = &plan.Least{State: 8, All: 8}
			}
			return []Figure{
				{"state of a rank", p.state() / gigabyte, "GB"},
				{"all of a rank", float64(p.Memory.Total()) / gigabyte, "GB"},
				{"least cards for the state", float64(least.State), ""},
				{"least cards for all", float64(least.All), ""},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			state, all := f.Of("least cards for the state"), f.Of("least cards for all")
			why := fmt.Sprintf("A rank of eight needs %s for its state alone and %s in all; the state takes %.0f "+
				"cards, everything %.0f.", f.Text("state of a rank"), f.Text("all of a rank"), state, all)
			if state <= 8 && all > 8 {
				return when(fmt.Sprintf("there are %.0f cards", all), why)
			}
			return choose(all <= 8, why)
		},
	}
}

func seventyStates() Claim {
	return Claim{
		Number: 12, Seconds: 1,
		Says:   "AdamW's two moments of a 70B model take 560 GB in FP32; each FP32 copy of its numbers takes 280 GB.",
		Source: "Loshchilov & Hutter 2017, arXiv 1711.05101; arithmetic",
		How:    "the plan of LLaMA 2 70B, scaled to 70 billion parameters",
		Rule:   "holds if both are within 5 %",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			p, err := planOf("llama2-70b")
			if err != nil {
				return nil, err
			}
			return []Figure{
				{"moments", p.each("optimizer state") * 70, "GB"},
				{"weights in FP32", p.each("parameters") * 70, "GB"},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			return choose(near(f.Of("moments"), 560, 0.05) && near(f.Of("weights in FP32"), 280, 0.05),
				fmt.Sprintf("The moments take %s, the weights %s.", f.Text("moments"), f.Text("weights in FP32")))
		},
	}
}

func gpt3Mesh() Claim {
	return Claim{
		Number: 50, Seconds: 1,
		Says:   "175 billion parameters train on 1,024 cards of 80 GB as tensor 8 × pipeline 4 × data 32.",
		Source: "Narayanan et al. 2021 (Megatron-LM), arXiv 2104.04473, and guides after it",
		How: "simulated steps of GPT-3 175B on 128×8 A100 cards in that mesh, with replicated and with sharded " +
			"optimizer state (ZeRO 1): memory of the fullest stage",
		Rule: "holds if the mesh has 1,024 ranks and fits with replicated state; holds when the optimizer state is " +
			"sharded if it fits only then",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			var list []Figure
			for zero, name := range []string{"replicated", "sharded"} {
				ranks, state, all, err := gpt3Memory(zero)
				if err != nil {
					return nil, err
				}
				if zero == 0 {
					list = append(list, Figure{"ranks", float64(ranks), ""})
				}
				list = append(list, Figure{"state, " + name, state / gigabyte, "GB"},
					Figure{"all, " + name, all / gigabyte, "GB"})
			}
			return list, nil
		},
		Judge: func(f *Figures) Verdict {
			const most = cluster.Usable * card / gigabyte
			why := fmt.Sprintf("A rank of the fullest stage keeps %s of state and %s in all if the state is "+
				"replicated, %s and %s if it is sharded; a card of 80 GiB has %.0f GB.", f.Text("state, replicated"),
				f.Text("all, replicated"),
				f.Text("state, sharded"), f.Text("all, sharded"), float64(card)/gigabyte)
			if f.Of("all, replicated") > most && f.Of("all, sharded") <= most {
				return when("the optimizer state is sharded over the replicas (ZeRO 1)", why)
			}
			return choose(f.Of("ranks") == 1024 && f.Of("all, replicated") <= most, why)
		},
	}
}

// gpt3Memory returns the ranks of the mesh, and the bytes of state and of everything in the fullest stage of GPT-3
// 175B on A100 cards, with each layer recomputed in the backward pass.
func gpt3Memory(zero int) (ranks int, state, all float64, err error) {
	recipe, err := cluster.LookupRecipe("gpt3-175b")
	if err != nil {
		return 0, 0, 0, err
	}
	cards, err := hardware.Parse("128x8xa100-80gb")
	if err != nil {
		return 0, 0, 0, err
	}
	run := cluster.Run{
		Shape: recipe.Shape, Batch: recipe.Batch, Cluster: cards, Stack: cluster.Modern,
		Mesh: cluster.Mesh{
			Data: 32, Tensor: 8, Pipeline: 4, Chunks: 1, Context: 1, Expert: 1, Micro: 1, Sequence: true, Zero: zero,
			Schedule: "1f1b", Recompute: cluster.Full, Precision: hardware.BF16,
		},
	}
	step, err := run.Simulate()
	if err != nil {
		return 0, 0, 0, err
	}
	for _, m := range run.Memory(step) {
		if m.Total() > all {
			state, all = m.Weights+m.Gradients+m.Optimizer, m.Total()
		}
	}
	return run.Mesh.Ranks(), state, all, nil
}

func sixteenBytes() Claim {
	return Claim{
		Number: 54, Seconds: 1,
		Says: "Mixed precision that sums gradients in FP32 keeps 16 bytes for each parameter: two-byte weights and " +
			"gradients, FP32 weights, two moments.",
		Source: "guides after Rajbhandari et al. 2019, arXiv 1910.02054",
		How: "the plan of LLaMA 2 7B in bf16, which sums gradients in FP32 and rounds weights when it multiplies; " +
			"and the same with a stored two-byte copy of the weights",
		Rule: "holds if a stored copy of the weights fits in 16 bytes; holds when no copy is stored if the plan " +
			"alone does",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			p, err := planOf("llama2-7b", "precision=bf16")
			if err != nil {
				return nil, err
			}
			each := p.state() / float64(p.Parameters)
			return []Figure{
				{"gradients", p.each("gradients"), "B/parameter"},
				{"state without a copy of the weights", each, "B/parameter"},
				{"state with a two-byte copy", each + 2, "B/parameter"},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			with, without := f.Of("state with a two-byte copy"), f.Of("state without a copy of the weights")
			why := fmt.Sprintf("With gradients of %s the state takes %s, and %s with a stored copy of the weights.",
				f.Text("gradients"), f.Text("state without a copy of the weights"),
				f.Text("state with a two-byte copy"))
			if with > 16.2 && without <= 16.2 {
				return when("the two-byte copy of the weights is not stored", why)
			}
			return choose(with <= 16.2, why)
		},
	}
}
