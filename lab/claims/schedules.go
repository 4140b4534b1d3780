package claims

import (
	"context"
	"fmt"

	"anneal/config"
	"anneal/optim"
	"anneal/schedule"
)

// scheduleClaims are about learning rates over a run.
func scheduleClaims() []Claim { return []Claim{warmupShare(), firstUpdate()} }

func warmupShare() Claim {
	return Claim{
		Number: 20, Seconds: 1,
		Says:   "The rate warms up over 0.1 to 2 % of training: 2,000 steps of LLaMA, 375 million tokens of GPT-3.",
		Source: "Touvron et al. 2023, arXiv 2307.09288; Brown et al. 2020, arXiv 2005.14165",
		How:    "the warm-up of published configurations (anneal recipe show), as a share of their training",
		Rule:   "holds if every share is from 0.1 to 2 %",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			var list []Figure
			for _, name := range []string{"llama2-7b", "gpt3-175b", "chinchilla-70b"} {
				cfg, err := config.Sources{Recipe: name, Planning: true}.Load()
				if err != nil {
					return nil, err
				}
				ramp, err := cfg.BatchRamp()
				if err != nil {
					return nil, err
				}
				warm := float64(ramp.Tokens(cfg.Schedule.Warmup))
				list = append(list, Figure{"warm-up of " + name, 100 * warm / float64(cfg.Tokens()), "%"})
			}
			return list, nil
		},
		Judge: func(f *Figures) Verdict {
			within := true
			for _, name := range []string{"llama2-7b", "gpt3-175b", "chinchilla-70b"} {
				x := f.Of("warm-up of " + name)
				within = within && x >= 0.1 && x <= 2
			}
			return choose(within, fmt.Sprintf("LLaMA 2 warms up over %s of its tokens, GPT-3 over %s, Chinchilla "+
				"over %s.",
				f.Text("warm-up of llama2-7b"), f.Text("warm-up of gpt3-175b"), f.Text("warm-up of chinchilla-70b")))
		},
	}
}

func firstUpdate() Claim {
	return Claim{
		Number: 60, Seconds: 1,
		Says:   "The first update of a warm-up has a rate of zero, and clipping divides by the norm plus 1e-6.",
		Source: "code in tutorials",
		How: "the rate of a cosine with 100 steps of warm-up at update 0 and update 1, and the coefficient for a " +
			"norm of 2 with a limit of 1, compared with limit/(norm + 1e-6)",
		Rule: "holds if the first update's rate is zero; holds when updates are counted from 0 if only then",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			s := schedule.Cosine{Warmup: 100, Steps: 1000, Final: 0.1}
			return []Figure{
				{"rate of the first update, counted from 0", s.Factor(0), "of the peak"},
				{"rate of the first update, counted from 1", s.Factor(1), "of the peak"},
				{"rate of the last update", s.Factor(1000), "of the peak"},
				{"1e-6 changes the coefficient by", 1 - optim.ClipScale(2, 1)/(1.0/2), "relative"},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			why := fmt.Sprintf("Counted from 1, as here, the first update has %s; counted from 0 it changes "+
				"nothing. The 1e-6 changes the coefficient of clipping by %s.",
				f.Text("rate of the first update, counted from 1"),
				f.Text("1e-6 changes the coefficient by"))
			zero := f.Of("rate of the first update, counted from 0") == 0
			one := f.Of("rate of the first update, counted from 1") == 0
			if zero && !one {
				return when("updates are counted from 0", why)
			}
			return choose(zero && one, why)
		},
	}
}
