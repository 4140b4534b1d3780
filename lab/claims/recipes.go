package claims

import (
	"context"
	"fmt"
	"math"
	"strings"

	"anneal/config"
	"anneal/scaling"
)

// recipeClaims are about the training of well-known models, and the laws that they follow.
func recipeClaims() []Claim {
	return []Claim{beta2(), scalingRatio(), tables(), chinchilla(), mistral()}
}

func recipe(name string) (*config.Config, error) {
	return config.Sources{Recipe: name, Planning: true}.Load()
}

func beta2() Claim {
	return Claim{
		Number: 19, Seconds: 1,
		Says:   "Large language models are trained with β2 = 0.95 instead of Adam's default of 0.999.",
		Source: "Brown et al. 2020 (GPT-3), arXiv 2005.14165; Touvron et al. 2023 (LLaMA 2), arXiv 2307.09288",
		How: "the value in their published configurations, and how many updates a burst of gradients stays in the " +
			"second moment",
		Rule: "holds if both have 0.95",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			gpt, err := recipe("gpt3-175b")
			if err != nil {
				return nil, err
			}
			llama, err := recipe("llama2-7b")
			if err != nil {
				return nil, err
			}
			half := func(beta float64) float64 { return math.Log(0.5) / math.Log(beta) }
			return []Figure{
				{"β2 of GPT-3", gpt.Optimizer.Beta2, ""},
				{"β2 of LLaMA 2", llama.Optimizer.Beta2, ""},
				{"a burst halves with 0.95 in", half(0.95), "updates"},
				{"a burst halves with 0.999 in", half(0.999), "updates"},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			return choose(f.Of("β2 of GPT-3") == 0.95 && f.Of("β2 of LLaMA 2") == 0.95, fmt.Sprintf("GPT-3 has %s "+
				"and LLaMA 2 has %s; a burst halves in %s instead of %s.", f.Text("β2 of GPT-3"),
				f.Text("β2 of LLaMA 2"),
				f.Text("a burst halves with 0.95 in"), f.Text("a burst halves with 0.999 in")))
		},
	}
}

func scalingRatio() Claim {
	return Claim{
		Number: 40, Seconds: 1,
		Says:   "A model of N parameters needs at least 20 N tokens.",
		Source: "guides after Hoffmann et al. 2022, arXiv 2203.15556",
		How: "the compute-optimal ratio by the corrected law (Besiroglu et al. 2024, arXiv 2404.10102) from 1e18 " +
			"to 1e25 FLOPs; and the model that is cheapest to train and to serve for 1e12 tokens at the loss of " +
			"the optimum of 1e22",
		Rule: "holds as a minimum if fewer tokens give no model at all and the cheapest has 20 or less; holds when " +
			"it is read as the compute-optimal ratio if that is from 15 to 30; else it does not hold",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			law := scaling.Besiroglu
			best := law.Optimum(1e22)
			serving, err := law.ForServing(best.Loss, 1e12)
			if err != nil {
				return nil, err
			}
			return []Figure{
				{"optimum at 1e18 FLOPs", law.Optimum(1e18).Ratio(), "tokens/parameter"},
				{"optimum at 1e25 FLOPs", law.Optimum(1e25).Ratio(), "tokens/parameter"},
				{"cheapest to train and serve", serving.Ratio(), "tokens/parameter"},
				{"half the tokens at the optimum of 1e22 cost", law.Loss(best.Params, best.Tokens/2) - best.Loss,
					"nats/token"},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			low, high := f.Of("optimum at 1e25 FLOPs"), f.Of("optimum at 1e18 FLOPs")
			why := fmt.Sprintf("The optimum falls from %s at 1e18 FLOPs to %s at 1e25; to train and serve, %s are "+
				"cheapest; half the tokens cost %s.", f.Text("optimum at 1e18 FLOPs"), f.Text("optimum at 1e25 FLOPs"),
				f.Text("cheapest to train and serve"), f.Text("half the tokens at the optimum of 1e22 cost"))
			ratio := min(low, high) >= 15 && max(low, high) <= 30
			if ratio && f.Of("cheapest to train and serve") > 20 {
				return when("it is read as the ratio that is best for a given compute, not as a minimum", why)
			}
			return choose(ratio, why)
		},
	}
}

func tables() Claim {
	return Claim{
		Number: 51, Seconds: 1,
		Says: "The published tables tell how GPT-3 175B and LLaMA 2 7B were trained: size, 300 billion and 2 " +
			"trillion tokens, and Adam's ε of 1e-8 and 1e-5.",
		Source: "Brown et al. 2020, arXiv 2005.14165; Touvron et al. 2023, arXiv 2307.09288",
		How:    "parameters and tokens that follow from the shape, the batch and the steps of the configurations",
		Rule: "holds if sizes are within 1 % of 175 and 6.74 billion, tokens within 1 % (GPT-3 with its ramp of " +
			"the batch), and ε is as published",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			var list []Figure
			for _, name := range []string{"gpt3-175b", "llama2-7b"} {
				p, err := planOf(name)
				if err != nil {
					return nil, err
				}
				list = append(list, Figure{name + ", parameters", float64(p.Parameters) / 1e9, "billion"},
					Figure{name + ", tokens", float64(p.cfg.Tokens()) / 1e9, "billion"},
					Figure{name + ", ε", p.cfg.Optimizer.Eps, ""})
			}
			return list, nil
		},
		Judge: func(f *Figures) Verdict {
			return choose(near(f.Of("gpt3-175b, parameters"), 175, 0.01) && near(f.Of("llama2-7b, parameters"),
				6.74, 0.01) &&
				near(f.Of("gpt3-175b, tokens"), 300, 0.01) && near(f.Of("llama2-7b, tokens"), 2000, 0.01) &&
				f.Of("gpt3-175b, ε") == 1e-8 && f.Of("llama2-7b, ε") == 1e-5, fmt.Sprintf("GPT-3 has %s parameters "+
				"and reads %s tokens with ε = %s; LLaMA 2 %s, %s and %s.", f.Text("gpt3-175b, parameters"),
				f.Text("gpt3-175b, tokens"),
				f.Text("gpt3-175b, ε"), f.Text("llama2-7b, parameters"), f.Text("llama2-7b, tokens"),
				f.Text("llama2-7b, ε")))
		},
	}
}

// undisclosed counts the lines of a recipe that are marked as undisclosed.
func undisclosed(name string) (float64, error) {
	text, err := config.RecipeText(name)
	return float64(strings.Count(text, "# not disclosed")), err
}

func chinchilla() Claim {
	return Claim{
		Number: 52, Seconds: 1,
		Says: "Chinchilla 70B was trained with batches of 1.5 million tokens, a warm-up of 1,500 steps and Adam's " +
			"usual constants.",
		Source: "guides after Hoffmann et al. 2022, arXiv 2203.15556",
		How: "the batch at the beginning and at the end of the published configuration, and its values that the " +
			"paper does not disclose",
		Rule: "holds if the batch is 1.5 million tokens throughout and nothing is undisclosed; holds when it is " +
			"about the first half if the batch grows",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			cfg, err := recipe("chinchilla-70b")
			if err != nil {
				return nil, err
			}
			ramp, err := cfg.BatchRamp()
			if err != nil {
				return nil, err
			}
			open, err := undisclosed("chinchilla-70b")
			return []Figure{
				{"first batch", float64(ramp.Batch(0)) / 1e6, "million tokens"},
				{"last batch", float64(cfg.Train.BatchTokens) / 1e6, "million tokens"},
				{"undisclosed values", open, ""},
			}, err
		},
		Judge: func(f *Figures) Verdict {
			first, last, open := f.Of("first batch"), f.Of("last batch"), f.Of("undisclosed values")
			why := fmt.Sprintf("The batch grows from %s to %s; %s values of the configuration are not disclosed, "+
				"Adam's constants among them.", f.Text("first batch"), f.Text("last batch"),
				f.Text("undisclosed values"))
			if near(first, 1.5, 0.06) && last > 1.1*first {
				return when("it is said of the first half of training, with constants taken from Gopher", why)
			}
			return choose(near(first, 1.5, 0.06) && open == 0, why)
		},
	}
}

func mistral() Claim {
	return Claim{
		Number: 53, Seconds: 1,
		Says:   "Mistral 7B was trained on about 8 trillion tokens, by a recipe that guides print.",
		Source: "guides; Jiang et al. 2023, arXiv 2310.06825, do not say",
		How:    "not here: its authors have not published it; the configuration counts what is not disclosed",
		Rule:   "not measurable here: it takes what its authors know",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			p, err := planOf("mistral-7b")
			if err != nil {
				return nil, err
			}
			open, err := undisclosed("mistral-7b")
			return []Figure{{"parameters", float64(p.Parameters) / 1e9, "billion"},
				{"undisclosed values", open, ""}}, err
		},
		Judge: func(f *Figures) Verdict {
			return elsewhere(fmt.Sprintf("The shape is published and gives %s parameters; %s values of its "+
				"training are not.",
				f.Text("parameters"), f.Text("undisclosed values")))
		},
	}
}
