package claims

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"

	"anneal/attention"
	"anneal/bench"
	"anneal/device"
	"anneal/device/cpu"
	"anneal/tensor"
)

// attentionClaims are about attention patterns and their cost.
func attentionClaims() []Claim {
	return []Claim{longOnCard(), sparse(), longformer(), longnet(), linearTime(), lengthWarmup()}
}

func longOnCard() Claim {
	return Claim{
		Number: 26, Seconds: 1,
		Says:   "FlashAttention makes a context of 100,000 tokens possible on an A100.",
		Source: "guides after Dao et al. 2022, arXiv 2205.14135",
		How: "plans of the shape of LLaMA 2 7B with 98,304 tokens, whose attention stores no scores: activations " +
			"with all kept and with each layer recomputed, compared with the scores of one layer",
		Rule: "holds if all activations fit in 80 GB; holds when each layer is recomputed if they fit only then",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			const tokens = 98304
			long := slices.Concat(seven, []string{fmt.Sprint("model.context=", tokens),
				fmt.Sprint("train.batch_tokens=", tokens)})
			kept, err := planOf("", long...)
			if err != nil {
				return nil, err
			}
			again, err := planOf("", append(long, "memory.recompute=every_layer")...)
			if err != nil {
				return nil, err
			}
			return []Figure{
				{"scores of one layer", 2 * tokens * tokens * 32 / gigabyte, "GB"},
				{"activations, all kept", kept.activations() / gigabyte, "GB"},
				{"activations, every layer again", again.activations() / gigabyte, "GB"},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			kept, again := f.Of("activations, all kept")*gigabyte, f.Of("activations, every layer again")*gigabyte
			why := fmt.Sprintf("The scores of one layer would take %s; without them activations take %s, and %s "+
				"with each layer recomputed, beside the state.", f.Text("scores of one layer"),
				f.Text("activations, all kept"), f.Text("activations, every layer again"))
			if kept > card && again <= card {
				return when("each layer is recomputed as well, and the state is elsewhere", why)
			}
			return choose(kept <= card, why)
		},
	}
}

// growth returns the exponent by which the pairs of a pattern grow with the length of the row, from 4,096 to 16,384
// tokens.
func growth(pattern func(length int) string) (float64, error) {
	var pairs [2]float64
	for i, length := range []int{4096, 16384} {
		list, err := attention.Describe(pattern(length), length, 2, 0, 1)
		if err != nil {
			return 0, err
		}
		pairs[i] = float64(list[0].Pairs)
	}
	return math.Log(pairs[1]/pairs[0]) / math.Log(4), nil
}

func sparse() Claim {
	return Claim{
		Number: 28, Seconds: 1,
		Says:   "Sparse attention takes n·√n operations for n tokens.",
		Source: "Child et al. 2019, arXiv 1904.10509",
		How:    "pairs of query and key of each pattern at 4,096 and 16,384 tokens: the exponent of their growth",
		Rule: "holds if strided, Longformer and BigBird all grow by an exponent of 1.4 to 1.6; holds when the " +
			"stride is √n if only strided does",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			var list []Figure
			for _, p := range []struct {
				name string
				text func(n int) string
			}{
				{"strided, stride √n", func(n int) string {
					return fmt.Sprint("strided:",
						int(math.Sqrt(float64(n))))
				}},
				{"Longformer", func(int) string { return "longformer" }},
				{"BigBird", func(int) string { return "bigbird" }},
				{"full", func(int) string { return "full" }},
			} {
				x, err := growth(p.text)
				if err != nil {
					return nil, err
				}
				list = append(list, Figure{p.name, x, "exponent"})
			}
			return list, nil
		},
		Judge: func(f *Figures) Verdict {
			root := func(name string) bool { return math.Abs(f.Of(name)-1.5) <= 0.1 }
			why := fmt.Sprintf("Pairs grow by n^%.2f with a stride of √n, n^%.2f with Longformer, n^%.2f with "+
				"BigBird and n^%.2f with full attention.", f.Of("strided, stride √n"), f.Of("Longformer"),
				f.Of("BigBird"),
				f.Of("full"))
			others := root("Longformer") && root("BigBird")
			if root("strided, stride √n") && !others {
				return when("heads have a stride of √n: windows with global or random tokens grow with n", why)
			}
			return choose(root("strided, stride √n") && others, why)
		},
	}
}

// changes reports whether a pattern's keys depend on the seed of random choices.
func changes(pattern string) (bool, error) {
	var list [2]*device.Layout
	for i := range list {
		layout, err := compiled(pattern, uint64(i)+1, 0)
		if err != nil {
			return false, err
		}
		list[i] = layout
	}
	return !reflect.DeepEqual(list[0].Graphs, list[1].Graphs), nil
}

// compiled returns the keys of a pattern in a layer, for rows of 4,096 tokens and 4 heads.
func compiled(pattern string, seed uint64, layer int) (*device.Layout, error) {
	const length, heads = 4096, 4
	p, err := attention.Parse(pattern)
	if err != nil {
		return nil, err
	}
	return attention.Compile(p.Resolve(length, seed), length, heads, layer)
}

func longformer() Claim {
	return Claim{
		Number: 29, Seconds: 1,
		Says: "Longformer attends to random tokens besides its window.",
		Source: "guides; Beltagy et al. 2020, arXiv 2004.05150, choose global tokens; random ones are of Zaheer et " +
			"al. 2020 (BigBird), arXiv 2007.14062",
		How:  "the keys of both patterns under two seeds of random choices",
		Rule: "holds if Longformer's keys depend on the seed",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			long, err := changes("longformer")
			if err != nil {
				return nil, err
			}
			bird, err := changes("bigbird")
			return []Figure{{"Longformer depends on the seed", truth(long), ""},
				{"BigBird depends on the seed", truth(bird), ""}}, err
		},
		Judge: func(f *Figures) Verdict {
			return choose(f.Of("Longformer depends on the seed") == 1, fmt.Sprintf("Of rows of 4,096 tokens under "+
				"two seeds, Longformer's keys are %s and BigBird's are %s.",
				sameOr(f.Of("Longformer depends on the seed")),
				sameOr(f.Of("BigBird depends on the seed"))))
		},
	}
}

func longnet() Claim {
	return Claim{
		Number: 30, Seconds: 1,
		Says:   "LongNet widens its dilation from layer to layer.",
		Source: "guides after Ding et al. 2023, arXiv 2307.02486",
		How: "the branches of segment and dilation in one layer, and the keys of the first layer compared with " +
			"those of layer 24",
		Rule: "holds if the layers see other keys",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			first, err := compiled("longnet:512", 1, 0)
			if err != nil {
				return nil, err
			}
			last, err := compiled("longnet:512", 1, 23)
			if err != nil {
				return nil, err
			}
			p, err := attention.Parse("longnet:512")
			if err != nil {
				return nil, err
			}
			branches := p.Resolve(4096, 1).(attention.LongNet).Branches
			return []Figure{
				{"branches in every layer", float64(len(branches)), ""},
				{"largest dilation", float64(branches[len(branches)-1].Dilation), ""},
				{"layers differ", truth(!reflect.DeepEqual(first, last)), ""},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			return choose(f.Of("layers differ") == 1, fmt.Sprintf("The keys of layers 1 and 24 are %s; each layer "+
				"has %s branches with dilations from 1 to %s.", sameOr(f.Of("layers differ")),
				f.Text("branches in every layer"), f.Text("largest dilation")))
		},
	}
}

func linearTime() Claim {
	return Claim{
		Number: 31, Seconds: 12,
		Says:   "Linear attention takes time in proportion to the length of the row.",
		Source: "Katharopoulos et al. 2020, arXiv 2006.16236",
		How: "time of forward and backward pass of one layer with 2,048 to 32,768 tokens, linear and full: the " +
			"exponent of its growth",
		Rule: "holds if the exponent of linear attention is below 1.2 and that of full attention is above 1.5",
		Measure: func(ctx context.Context, _ *Env) ([]Figure, error) {
			dev, err := cpu.New(0)
			if err != nil {
				return nil, err
			}
			defer dev.Close()
			r, err := bench.Attention(bench.Shared(dev), bench.AttentionOptions{
				Patterns: []string{"full", "linear"}, Lengths: []int{2048, 4096, 8192, 16384, 32768},
				Heads: 8, HeadDim: 64,
				DType: tensor.BF16, Seconds: 0.5,
			}, func(bench.AttentionCase) {})
			if err != nil {
				return nil, err
			}
			last := r.Cases[len(r.Cases)-1]
			return []Figure{
				{"full", r.Growth[0].Exponent, "exponent"},
				{"linear", r.Growth[1].Exponent, "exponent"},
				{"linear over full with 32,768 tokens", last.OfDense, "times"},
			}, ctx.Err()
		},
		Judge: func(f *Figures) Verdict {
			return choose(f.Of("linear") < 1.2 && f.Of("full") > 1.5, fmt.Sprintf("Time grows by n^%.2f with "+
				"linear and n^%.2f with full attention; with 32,768 tokens linear takes %.3g of the time.",
				f.Of("linear"),
				f.Of("full"), f.Of("linear over full with 32,768 tokens")))
		},
	}
}

func lengthWarmup() Claim {
	return Claim{
		Number: 44, Seconds: 1,
		Says:   "Training on short sequences first dramatically reduces the operations of training.",
		Source: "guides after Li et al. 2021, arXiv 2108.06084",
		How: "operations of a token of the shape of LLaMA 2 7B (width 4,096) in contexts of 64, 4,096 and 65,536 " +
			"tokens, by plans; a ramp over a third of the run saves a sixth of the difference",
		Rule: "holds if such a ramp saves 5 % or more at a context of 4,096; holds when the context is far longer " +
			"than the model is wide if only at 65,536",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			var list []Figure
			var short float64
			for _, n := range []int{64, 4096, 65536} {
				p, err := planOf("", slices.Concat(seven, []string{fmt.Sprint("model.context=", n),
					fmt.Sprint("train.batch_tokens=", n)})...)
				if err != nil {
					return nil, err
				}
				if n == 64 {
					short = p.FLOPsPerToken
					continue
				}
				list = append(list,
					Figure{fmt.Sprintf("short sequences save at most, of %d", n),
						100 * (1 - short/p.FLOPsPerToken), "%"},
					Figure{fmt.Sprintf("a ramp saves, of %d", n), 100 * (1 - short/p.FLOPsPerToken) / 6, "%"})
			}
			return list, nil
		},
		Judge: func(f *Figures) Verdict {
			near, far := f.Of("a ramp saves, of 4096"), f.Of("a ramp saves, of 65536")
			why := fmt.Sprintf("With a context of 4,096 a ramp over a third of the run saves %s and short "+
				"sequences alone would save %s; with one of 65,536 it is %s and %s.", f.Text("a ramp saves, of 4096"),
				f.Text("short sequences save at most, of 4096"), f.Text("a ramp saves, of 65536"),
				f.Text("short sequences save at most, of 65536"))
			if near < 5 && far >= 5 {
				return when("the context is far longer than the model is wide", why)
			}
			return choose(near >= 5, why)
		},
	}
}
