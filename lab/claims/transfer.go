package claims

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"anneal/config"
	"anneal/lab"
	"anneal/use"
)

// transferClaims are about transfer to other lengths, widths and runs.
func transferClaims() []Claim { return []Claim{alibi(), widthTransfer(), rangeTest()} }

func alibi() Claim {
	return Claim{
		Number: 32, Seconds: 80,
		Says:   "ALiBi reads rows several times as long as those it was trained on, at no cost.",
		Source: "Press et al. 2021, arXiv 2108.12409",
		How: smallRuns + "model.positions = alibi and rope, evaluated at the context of the training and at four " +
			"times that",
		Rule: "holds if ALiBi's loss at four times the context is 2 % lower than at the trained one, where it is " +
			"within 1 % of rope's; holds when it is enough that the loss does not rise if it is at most 1 % " +
			"higher; else it does not hold",
		Measure: func(ctx context.Context, e *Env) ([]Figure, error) {
			kinds := [][]string{{"model.positions=alibi"}, {"model.positions=rope"}}
			bits, err := e.bits(ctx, kinds...)
			if err != nil {
				return nil, err
			}
			var list []Figure
			for i, name := range []string{"ALiBi", "rope"} {
				far, err := e.far(ctx, kinds[i])
				if err != nil {
					return nil, err
				}
				list = append(list, Figure{name + " at once", mean(bits[i]), "bits/byte"},
					Figure{name + " at four times", far, "bits/byte"})
			}
			return list, nil
		},
		Judge: func(f *Figures) Verdict {
			near, far := f.Of("ALiBi at once"), f.Of("ALiBi at four times")
			free := near <= 1.01*f.Of("rope at once")
			why := fmt.Sprintf("ALiBi has %s at the trained context and %s at four times that, rope %s and %s.",
				f.Text("ALiBi at once"), f.Text("ALiBi at four times"), f.Text("rope at once"),
				f.Text("rope at four times"))
			if free && far > 0.98*near && far <= 1.01*near {
				return when("it is enough that the loss does not rise: longer rows do not lower it", why)
			}
			return choose(free && far <= 0.98*near, why)
		},
	}
}

// far returns the mean held-out loss of runs at four times their training context, in bits per byte.
func (e *Env) far(ctx context.Context, overrides []string) (float64, error) {
	var bits []float64
	for seed := range seeds {
		r, err := use.OpenWith(e.dir.File(runName(seed+1, overrides)), use.OpenOptions{Reach: use.Reach{Context: "4x"}})
		if err != nil {
			return 0, err
		}
		result, err := r.Evaluate(ctx, e.dir.File("source"), 1<<17, nil)
		r.Close()
		if err != nil {
			return 0, err
		}
		bits = append(bits, result.BitsPerByte)
	}
	return mean(bits), nil
}

func widthTransfer() Claim {
	return Claim{
		Number: 41, Seconds: 10,
		Says:   "With muP the best learning rate of a narrow model is that of a wide one.",
		Source: "Yang et al. 2022, arXiv 2203.03466",
		How: "the coordinate check, without which rates do not carry over: activations after three updates at " +
			"widths 64, 128 and 256, with muP and without; the power of the width by which the fastest grows",
		Rule: "holds when only the width changes if nothing grows faster than width^0.15 with muP and something " +
			"does without; else it does not hold",
		Measure: func(ctx context.Context, _ *Env) ([]Figure, error) {
			with, err := coordinates(ctx, false)
			if err != nil {
				return nil, err
			}
			without, err := coordinates(ctx, true)
			return []Figure{{"growth with muP", with, "power"}, {"growth without", without, "power"}}, err
		},
		Judge: func(f *Figures) Verdict {
			with, without := f.Of("growth with muP"), f.Of("growth without")
			why := fmt.Sprintf("The fastest activations grow like width^%.2f with muP and width^%.2f without.",
				with, without)
			if with <= 0.15 && without > 0.15 {
				return when("only the width changes: depth, data and batch are not covered", why)
			}
			return choose(false, why)
		},
	}
}

// coordinates returns the largest power of the width by which activations grow after the last update.
func coordinates(ctx context.Context, standard bool) (float64, error) {
	const steps = 3
	c, err := lab.CheckCoordinates(ctx, lab.CoordinateOptions{
		Family: lab.Family{
			Overrides: []string{"data.path=random", "model.layers=2", "model.dim=64", "model.heads=2",
				"model.context=64",
				"model.vocab=256"},
			Widths: []int{64, 128, 256}, Standard: standard,
		},
		Random: true, Steps: steps, Seeds: 2, LR: 0.003,
	})
	var grows *lab.NotFlatError
	if err != nil && !errors.As(err, &grows) {
		return 0, err
	}
	worst := math.Inf(-1)
	for _, r := range c.Rows {
		if r.Step == steps {
			worst = max(worst, r.Slope)
		}
	}
	return worst, nil
}

func rangeTest() Claim {
	return Claim{
		Number: 45, Seconds: 120,
		Says:   "A range test finds the best learning rate in minutes.",
		Source: "Smith 2015, arXiv 1506.01186; guides",
		How:    smallRuns + "six rates from 1e-3 to 3.2e-2, compared with a range test of 100 steps",
		Rule: "holds if the rate at which the test's loss falls fastest is within a factor of 2 of the best; holds " +
			"when it is read as a bracket if the best lies below the rate of the lowest loss",
		Measure: func(ctx context.Context, e *Env) ([]Figure, error) {
			rates := []string{"1e-3", "2e-3", "4e-3", "8e-3", "1.6e-2", "3.2e-2"}
			var variants [][]string
			for _, rate := range rates {
				variants = append(variants, []string{"optimizer.lr=" + rate})
			}
			bits, err := e.bits(ctx, variants...)
			if err != nil {
				return nil, err
			}
			first := 0
			for i := range rates {
				if mean(bits[i]) < mean(bits[first]) {
					first = i
				}
			}
			best, err := strconv.ParseFloat(rates[first], 64)
			if err != nil {
				return nil, err
			}
			cfg, err := config.Sources{Overrides: slices.Concat([]string{"data.path=" + e.dir.File("source")},
				small)}.Load()
			if err != nil {
				return nil, err
			}
			r, err := lab.FindLR(ctx, lab.LROptions{Config: cfg, Low: 1e-5, High: 1, Steps: 100,
				OnStep: func(int, float64, float64) {}})
			if err != nil {
				return nil, err
			}
			return []Figure{
				{"best of six rates", best, ""},
				{"the test's loss falls fastest at", r.Steepest, ""},
				{"the test's loss is lowest at", r.Lowest, ""},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			best, steepest, lowest := f.Of("best of six rates"), f.Of("the test's loss falls fastest at"),
				f.Of("the test's loss is lowest at")
			why := fmt.Sprintf("Runs end best at a rate of %.1e; the test's loss falls fastest at %.1e and is "+
				"lowest at %.1e.", best,
				steepest, lowest)
			near := steepest >= best/2 && steepest <= 2*best
			if !near && best < lowest {
				return when("it is read as a bracket: the best rate lies below that of the lowest loss", why)
			}
			return choose(near, why)
		},
	}
}
