package claims

import (
	"context"
	"fmt"
)

// trainingClaims are about losses: small models are trained with and without the technique of a claim.
func trainingClaims() []Claim {
	return []Claim{clipping(), sophia(), cosineBest(), decayShare(), narrowPrecision(), heInit(), skippedLayers()}
}

// smallRuns describes how a comparison is made.
const smallRuns = "half a million parameters, 600,000 tokens of Go source at a rate of 4e-3, two seeds: held-out " +
	"bits per byte; "

// tunedRuns describes the same comparison at the best rate for a cosine, as found by claim 45. If the rate is too low,
// the schedule that keeps it high for the longest time wins.
const tunedRuns = "half a million parameters, 600,000 tokens of Go source at a rate of 1.6e-2, the best of six for " +
	"a cosine, two seeds: held-out bits per byte; "

const tuned = "optimizer.lr=1.6e-2"

func clipping() Claim {
	return Claim{
		Number: 8, Seconds: 120,
		Says:   "Clipping the norm of the gradient at 1 is the most reliable guard of a run.",
		Source: "Pascanu et al. 2012, arXiv 1211.5063; guides",
		How:    smallRuns + "with and without train.clip = 1, at a usual rate and at eight times that",
		Rule: "holds if clipping improves the runs at both rates, by 2 % or more at the high one and 1 % at the " +
			"usual one; holds when the rate is high if it improves only those and costs less than 1 % at the usual one",
		Measure: func(ctx context.Context, e *Env) ([]Figure, error) {
			bits, err := e.bits(ctx, nil, []string{"train.clip=0"}, []string{"optimizer.lr=3.2e-2"},
				[]string{"optimizer.lr=3.2e-2", "train.clip=0"})
			if err != nil {
				return nil, err
			}
			return []Figure{
				{"usual rate, clipped", mean(bits[0]), "bits/byte"},
				{"usual rate, not clipped", mean(bits[1]), "bits/byte"},
				{"high rate, clipped", mean(bits[2]), "bits/byte"},
				{"high rate, not clipped", mean(bits[3]), "bits/byte"},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			guard := 100 * (1 - f.Of("high rate, clipped")/f.Of("high rate, not clipped"))
			cost := 100 * (f.Of("usual rate, clipped")/f.Of("usual rate, not clipped") - 1)
			why := fmt.Sprintf("At the usual rate clipping changes the loss by %+.1f %% (to %s), at eight times "+
				"that by %+.1f %% (to %s).", cost, f.Text("usual rate, clipped"), -guard, f.Text("high rate, clipped"))
			if guard >= 2 && cost > -1 && cost < 1 {
				return when("the rate is too high: at a usual one nothing changes", why)
			}
			return choose(guard >= 2 && cost <= -1, why)
		},
	}
}

func sophia() Claim {
	return Claim{
		Number: 16, Seconds: 300,
		Says:   "Sophia reaches AdamW's loss in half the steps.",
		Source: "Liu et al. 2023, arXiv 2305.14342",
		How:    smallRuns + "AdamW for 150 steps, Sophia for 75 and for 150, each at the best of four rates",
		Rule:   "holds if Sophia's best of 75 steps is within 1 % of AdamW's best of 150",
		Measure: func(ctx context.Context, e *Env) ([]Figure, error) {
			var variants [][]string
			for _, rate := range []string{"2e-3", "4e-3", "8e-3", "1.6e-2"} {
				variants = append(variants, []string{"optimizer.lr=" + rate})
			}
			for _, steps := range []string{"75", "150"} {
				for _, rate := range []string{"1e-3", "2e-3", "4e-3", "8e-3"} {
					variants = append(variants, []string{"optimizer.name=sophia", "optimizer.lr=" + rate,
						"train.steps=" + steps})
				}
			}
			bits, err := e.bits(ctx, variants...)
			if err != nil {
				return nil, err
			}
			best := func(list [][]float64) float64 {
				least := mean(list[0])
				for _, x := range list[1:] {
					least = min(least, mean(x))
				}
				return least
			}
			return []Figure{
				{"AdamW, 150 steps", best(bits[:4]), "bits/byte"},
				{"Sophia, 75 steps", best(bits[4:8]), "bits/byte"},
				{"Sophia, 150 steps", best(bits[8:]), "bits/byte"},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			return choose(f.Of("Sophia, 75 steps") <= 1.01*f.Of("AdamW, 150 steps"), fmt.Sprintf("At its best rate "+
				"AdamW ends at %s after 150 steps, Sophia at %s after 75 and at %s after 150.",
				f.Text("AdamW, 150 steps"),
				f.Text("Sophia, 75 steps"), f.Text("Sophia, 150 steps")))
		},
	}
}

func cosineBest() Claim {
	return Claim{
		Number: 21, Seconds: 100,
		Says:   "A cosine that falls to a tenth of the peak is the best schedule.",
		Source: "Hoffmann et al. 2022, arXiv 2203.15556; guides",
		How:    tunedRuns + "a cosine to 0.1, linear to 0, warmup-stable-decay over a fifth to 0, and a constant rate",
		Rule: "holds if no other schedule is more than 1 % better and constant is worse by 1 % or more; holds when " +
			"the others do not fall to zero if only those that do are better; else it does not hold",
		Measure: func(ctx context.Context, e *Env) ([]Figure, error) {
			bits, err := e.bits(ctx, []string{tuned, "schedule.final_ratio=0.1"},
				[]string{tuned, "schedule.name=linear", "schedule.final_ratio=0"},
				[]string{tuned, "schedule.name=wsd", "schedule.decay_fraction=0.2", "schedule.final_ratio=0"},
				[]string{tuned, "schedule.name=constant"})
			if err != nil {
				return nil, err
			}
			return []Figure{
				{"cosine to 0.1", mean(bits[0]), "bits/byte"},
				{"linear to 0 is better by", better(bits[0], bits[1]), "%"},
				{"WSD is better by", better(bits[0], bits[2]), "%"},
				{"constant is better by", better(bits[0], bits[3]), "%"},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			linear, wsd, flat := f.Of("linear to 0 is better by"), f.Of("WSD is better by"),
				f.Of("constant is better by")
			why := fmt.Sprintf("The cosine ends at %s; linear to zero is %s, WSD %s, a constant rate %s.",
				f.Text("cosine to 0.1"), gain(linear), gain(wsd), gain(flat))
			if flat <= -1 && max(linear, wsd) > 1 {
				return when("the others do not fall to zero", why)
			}
			return choose(flat <= -1 && max(linear, wsd) <= 1, why)
		},
	}
}

func decayShare() Claim {
	return Claim{
		Number: 22, Seconds: 120,
		Says: "The decay of a warmup-stable-decay schedule takes 10 to 20 % of the run, and exponential is a good " +
			"shape.",
		Source: "Hu et al. 2024 (MiniCPM), arXiv 2404.06395",
		How:    tunedRuns + "linear decays over 5, 10, 20 and 50 %, and an exponential one over 20 %",
		Rule: "holds if the better of 10 and 20 % is within 1 % of the best decay and the exponential one is " +
			"within 1 % of the linear one; holds when runs are long if a longer decay is better",
		Measure: func(ctx context.Context, e *Env) ([]Figure, error) {
			var variants [][]string
			for _, share := range []string{"0.05", "0.1", "0.2", "0.5"} {
				variants = append(variants, []string{tuned, "schedule.name=wsd", "schedule.decay_shape=linear",
					"schedule.decay_fraction=" + share})
			}
			variants = append(variants, []string{tuned, "schedule.name=wsd", "schedule.decay_shape=exponential",
				"schedule.decay_fraction=0.2"})
			bits, err := e.bits(ctx, variants...)
			if err != nil {
				return nil, err
			}
			var list []Figure
			for i, name := range []string{"5 %", "10 %", "20 %", "50 %", "20 %, exponential"} {
				list = append(list, Figure{name, mean(bits[i]), "bits/byte"})
			}
			return list, nil
		},
		Judge: func(f *Figures) Verdict {
			usual, long := min(f.Of("10 %"), f.Of("20 %")), f.Of("50 %")
			best := min(usual, long, f.Of("5 %"))
			shape := f.Of("20 %, exponential") <= 1.01*f.Of("20 %")
			why := fmt.Sprintf("A linear decay over 5 %% ends at %s, over 10 %% at %s, over 20 %% at %s, over 50 "+
				"%% at %s; an exponential one over 20 %% at %s.", f.Text("5 %"), f.Text("10 %"), f.Text("20 %"),
				f.Text("50 %"),
				f.Text("20 %, exponential"))
			if usual > 1.01*best && long == best {
				return when("runs are long: this short one gains from half of it", why)
			}
			return choose(usual <= 1.01*best && shape, why)
		},
	}
}

func narrowPrecision() Claim {
	return Claim{
		Number: 34, Seconds: 70,
		Says:   "BF16, with 7 mantissa bits, follows the loss of FP32.",
		Source: "Kalamkar et al. 2019, arXiv 1905.12322",
		How:    smallRuns + "precision = bf16 and fp32",
		Rule:   "holds if the losses are within 0.5 %",
		Measure: func(ctx context.Context, e *Env) ([]Figure, error) {
			bits, err := e.bits(ctx, nil, []string{"precision=fp32"})
			if err != nil {
				return nil, err
			}
			return []Figure{
				{"BF16", mean(bits[0]), "bits/byte"},
				{"FP32", mean(bits[1]), "bits/byte"},
				{"behind the point", float64(bf16.mantissa()), "bits"},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			return choose(near(f.Of("BF16"), f.Of("FP32"), 0.005), fmt.Sprintf("BF16, with %s of mantissa, "+
				"ends at %s, FP32 at %s: %+.2f %%.", f.Text("behind the point"), f.Text("BF16"), f.Text("FP32"),
				100*(f.Of("BF16")/f.Of("FP32")-1)))
		},
	}
}

func heInit() Claim {
	return Claim{
		Number: 42, Seconds: 70,
		Says:   "He's initialisation, with variance 2/fan-in, is the right start for a language model.",
		Source: "guides after He et al. 2015, arXiv 1502.01852",
		How:    smallRuns + "model.init = he and gpt2 (0.02, and smaller where a branch ends)",
		Rule: "holds if He's start is better by 1 % or more; holds when any sensible start will do if it is " +
			"within 1 %",
		Measure: func(ctx context.Context, e *Env) ([]Figure, error) {
			bits, err := e.bits(ctx, nil, []string{"model.init=he"})
			if err != nil {
				return nil, err
			}
			return []Figure{
				{"gpt2", mean(bits[0]), "bits/byte"},
				{"He", mean(bits[1]), "bits/byte"},
				{"He is better by", better(bits[0], bits[1]), "%"},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			x := f.Of("He is better by")
			why := fmt.Sprintf("From He's start the model ends at %s, from GPT-2's at %s: it is %s.", f.Text("He"),
				f.Text("gpt2"), gain(x))
			if x > -1 && x < 1 {
				return when("any sensible start will do", why)
			}
			return choose(x >= 1, why)
		},
	}
}

func skippedLayers() Claim {
	return Claim{
		Number: 43, Seconds: 70,
		Says:   "Stochastic depth trains faster and to a better loss.",
		Source: "Huang et al. 2016, arXiv 1603.09382",
		How: smallRuns + "model.stochastic_depth = 0.5 and 0; the operations that it saves are the mean share " +
			"of skipped branches",
		Rule: "holds if it saves 10 % or more of the layers' operations and the loss is better; holds when time " +
			"counts more than the loss if the loss is within 1 %",
		Measure: func(ctx context.Context, e *Env) ([]Figure, error) {
			const layers, last = 4, 0.5
			bits, err := e.bits(ctx, nil, []string{"model.stochastic_depth=0.5"})
			if err != nil {
				return nil, err
			}
			skipped := 0.0
			for i := range layers {
				skipped += last * float64(i+1) / layers / layers
			}
			return []Figure{
				{"without", mean(bits[0]), "bits/byte"},
				{"with", mean(bits[1]), "bits/byte"},
				{"branches skipped", 100 * skipped, "%"},
				{"better by", better(bits[0], bits[1]), "%"},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			x, saved := f.Of("better by"), f.Of("branches skipped")
			why := fmt.Sprintf("It skips %s of the branches and ends at %s instead of %s: it is %s.",
				f.Text("branches skipped"), f.Text("with"), f.Text("without"), gain(x))
			if saved >= 10 && x > -1 && x <= 0 {
				return when("time counts more than the loss", why)
			}
			return choose(saved >= 10 && x > 0, why)
		},
	}
}
