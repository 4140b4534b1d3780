package claims

import (
	"context"
	"fmt"
	"slices"

	"anneal/hardware"
	"anneal/plan/cluster"
)

// parallelClaims are about the messages and the memory of ranks.
func parallelClaims() []Claim {
	return []Claim{accumulation(), ring(), tensorOutputs(), nvlink(), sharding()}
}

func accumulation() Claim {
	return Claim{
		Number: 7, Seconds: 1,
		Says:   "Accumulating gradients over micro-batches enlarges the batch without more communication.",
		Source: "guides; Goyal et al. 2017, arXiv 1706.02677, for the large batch",
		How: "plans of LLaMA 2 7B on 8 ranks with one and with eight micro-batches a rank, whose gradients travel " +
			"one by one, as bits that do not depend on the ranks need, and as sums of eight: bytes a rank sends in " +
			"a step",
		Rule: "holds if eight micro-batches send no more than one either way; holds when sums travel if only sums do",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			sent := func(micro, block int) (float64, error) {
				p, err := planOf("", slices.Concat(seven, []string{"parallel.ranks=8",
					fmt.Sprint("train.batch_tokens=", 8*4096*micro), fmt.Sprint("parallel.sum_block=", block)})...)
				if err != nil {
					return 0, err
				}
				return float64(p.Ranks.Stages[0].SentGradients) / gigabyte, nil
			}
			var list []Figure
			for _, x := range []struct {
				name         string
				micro, block int
			}{{"one micro-batch", 1, 1}, {"eight, one by one", 8, 1}, {"eight, as a sum", 8, 8}} {
				bytes, err := sent(x.micro, x.block)
				if err != nil {
					return nil, err
				}
				list = append(list, Figure{x.name, bytes, "GB"})
			}
			return list, nil
		},
		Judge: func(f *Figures) Verdict {
			one, each, sum := f.Of("one micro-batch"), f.Of("eight, one by one"), f.Of("eight, as a sum")
			why := fmt.Sprintf("A rank sends %s in a step of one micro-batch, %s in a step of eight that travel "+
				"one by one, and %s in a step of eight that travel as a sum.", f.Text("one micro-batch"),
				f.Text("eight, one by one"), f.Text("eight, as a sum"))
			if each > 1.01*one && sum <= 1.01*one {
				return when("ranks sum their micro-batches before they send (parallel.sum_block)", why)
			}
			return choose(each <= 1.01*one, why)
		},
	}
}

func ring() Claim {
	return Claim{
		Number: 33, Seconds: 4,
		Says:   "Ring attention makes the context grow with the number of devices, to a million tokens and more.",
		Source: "Liu et al. 2023, arXiv 2310.01889",
		How: "plans of the shape of LLaMA 2 7B with parallel.attention = ring and each layer recomputed: " +
			"activations of 131,072 tokens on 1 and 8 ranks, and of 1,048,576 tokens on 64 ranks of 80 GB; " +
			"operations a token",
		Rule: "holds if 8 ranks keep at most a seventh of the activations of one and a million tokens fit 64 ranks",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			context := func(tokens, ranks int) (*planned, error) {
				return planOf("", slices.Concat(seven, []string{
					fmt.Sprint("model.context=", tokens), fmt.Sprint("train.batch_tokens=", tokens),
					fmt.Sprint("parallel.ranks=", ranks), fmt.Sprint("parallel.context=", ranks),
					"parallel.attention=ring", "parallel.zero=3", "memory.recompute=every_layer"})...)
			}
			one, err := context(1<<17, 1)
			if err != nil {
				return nil, err
			}
			eight, err := context(1<<17, 8)
			if err != nil {
				return nil, err
			}
			million, err := context(1<<20, 64)
			if err != nil {
				return nil, err
			}
			short, err := planOf("", seven...)
			if err != nil {
				return nil, err
			}
			return []Figure{
				{"activations of 131,072 tokens, one rank", one.activations() / gigabyte, "GB"},
				{"activations of 131,072 tokens, eight ranks", eight.activations() / gigabyte, "GB"},
				{"all of a million tokens, each of 64 ranks", float64(million.Memory.Total()) / gigabyte, "GB"},
				{"operations a token, over a context of 4,096", million.FLOPsPerToken / short.FLOPsPerToken, "times"},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			less := f.Of("activations of 131,072 tokens, one rank") / f.Of("activations of 131,072 tokens, eight ranks")
			all := f.Of("all of a million tokens, each of 64 ranks")
			return choose(less >= 7 && all*gigabyte <= card, fmt.Sprintf("Eight ranks keep %.1f times less than "+
				"one; a million tokens take %s of each of 64 ranks. A token costs %s the operations of one in a "+
				"context of 4,096.",
				less, f.Text("all of a million tokens, each of 64 ranks"),
				f.Text("operations a token, over a context of 4,096")))
		},
	}
}

func tensorOutputs() Claim {
	return Claim{
		Number: 48, Seconds: 1,
		Says:   "Tensor parallelism joins its outputs by an all-gather, at little latency: so it may span hosts.",
		Source: "guides; Shoeybi et al. 2019 (Megatron-LM), arXiv 1909.08053, sum them",
		How: "what a rank of 8 sends for another layer of LLaMA 2 7B, by plans, beside one all-gather of each " +
			"branch's output and gradient in two bytes; and simulated steps of LLaMA 2 70B on H100 with 8 ranks " +
			"inside a host and 16 across two",
		Rule: "holds if a layer sends at most 1.1 times what the all-gathers would and ranks across hosts wait for " +
			"messages less than 10 % of a step",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			const ranks = 8
			var sent [2]float64
			for i, layers := range []int{2, 4} {
				p, err := planOf("", slices.Concat(seven, []string{fmt.Sprint("model.layers=", layers),
					fmt.Sprint("parallel.ranks=", ranks), fmt.Sprint("parallel.tensor=", ranks),
					"train.batch_tokens=4096"})...)
				if err != nil {
					return nil, err
				}
				sent[i] = float64(p.Ranks.Mesh[0].Sent.Tensor)
			}
			// Each rank sends its eighth of two outputs, and of two gradients, to seven others, in two bytes.
			gather := 4 * 4096 * 4096 * 2 * float64(ranks-1) / ranks
			list := []Figure{{"sent for a layer", (sent[1] - sent[0]) / 2 / gather, "times the all-gathers"}}
			for _, t := range []int{8, 16} {
				share, err := tensorWaits(t)
				if err != nil {
					return nil, err
				}
				list = append(list, Figure{fmt.Sprintf("waiting with %d ranks", t), 100 * share, "% of a step"})
			}
			return list, nil
		},
		Judge: func(f *Figures) Verdict {
			return choose(f.Of("sent for a layer") <= 1.1 && f.Of("waiting with 16 ranks") < 10, fmt.Sprintf(
				"A rank sends %s for a layer: it takes part in sums. Messages hold up %s with 8 ranks in a host "+
					"and %s with 16 across two.", f.Text("sent for a layer"), f.Text("waiting with 8 ranks"),
				f.Text("waiting with 16 ranks")))
		},
	}
}

// tensorWaits returns the share of a step of LLaMA 2 70B that ranks of tensor parallelism wait for each other.
func tensorWaits(ranks int) (float64, error) {
	recipe, err := cluster.LookupRecipe("llama2-70b")
	if err != nil {
		return 0, err
	}
	cards, err := hardware.Parse("8x8xh100-80gb")
	if err != nil {
		return 0, err
	}
	run := cluster.Run{
		Shape: recipe.Shape, Batch: 64, Cluster: cards, Stack: cluster.Modern,
		Mesh: cluster.Mesh{
			Data: 64 / ranks, Tensor: ranks, Sequence: true, Pipeline: 1, Chunks: 1, Context: 1, Expert: 1, Micro: 1,
			Zero: 1, Schedule: "1f1b", Recompute: cluster.None, Precision: hardware.BF16,
		},
	}
	step, err := run.Simulate()
	if err != nil {
		return 0, err
	}
	return step.Phases.Tensor / step.Seconds, nil
}

func nvlink() Claim {
	return Claim{
		Number: 49, Seconds: 1,
		Says:   "The NVLink of an H100 carries 900 GB/s.",
		Source: "NVIDIA, data sheet of the H100 SXM",
		How:    "not here: it takes two H100 cards of a host; the table of accelerators says what the plans assume",
		Rule:   "not measurable here without two H100 cards",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			k, err := hardware.Lookup("h100-80gb")
			return []Figure{{"in the table, one way", k.Inside / 1e9, "GB/s"},
				{"both ways", 2 * k.Inside / 1e9, "GB/s"}}, err
		},
		Judge: func(f *Figures) Verdict {
			return elsewhere(fmt.Sprintf("It takes two H100 cards; plans assume %s each way, which is %s both ways.",
				f.Text("in the table, one way"), f.Text("both ways")))
		},
	}
}

func sharding() Claim {
	return Claim{
		Number: 59, Seconds: 4,
		Says: "Fully sharded training needs no library such as DeepSpeed besides the framework, and gives the same " +
			"model.",
		Source: "Zhao et al. 2023 (FSDP), arXiv 2304.11277",
		How: "five steps of a small model on one rank, and on two ranks of this process with parallel.zero = 3: " +
			"the weights",
		Rule: "holds if the weights are the same, bit for bit",
		Measure: func(ctx context.Context, e *Env) ([]Figure, error) {
			one, err := e.weights(ctx, "parallel.ranks=1")
			if err != nil {
				return nil, err
			}
			two, err := e.weights(ctx, "parallel.ranks=2", "parallel.zero=3", "threads=2")
			return []Figure{{"ranks", 2, ""}, {"same weights", truth(one == two), ""}}, err
		},
		Judge: func(f *Figures) Verdict {
			same := f.Of("same weights")
			return choose(same == 1, fmt.Sprintf("The weights of %s ranks that share weights, gradients and state "+
				"are %s as those of one, in one program.", f.Text("ranks"), sameOr(1-same)))
		},
	}
}
