package claims

import (
	"context"
	"fmt"
	"math"

	"anneal/program"
)

// pipelineClaims are about pipeline stages waiting for each other.
func pipelineClaims() []Claim { return []Claim{bubble(), interleaved()} }

// idle returns the idle share of a pipeline's step, if a backward pass takes twice as long as a forward pass.
func idle(schedule string, stages, micro int) (float64, error) {
	s, err := program.Parse(schedule)
	if err != nil {
		return 0, err
	}
	lists, err := s.Make(stages, micro)
	if err != nil {
		return 0, err
	}
	t, err := program.Simulate(lists, program.Even(stages, s.Chunks, 1, 1, 1))
	return t.IdleShare(), err
}

func bubble() Claim {
	const stages = 8
	return Claim{
		Number: 46, Seconds: 1,
		Says: "A pipeline of p stages idles (p−1)/(m+p−1) of a step with m micro-batches, which is negligible when " +
			"m is much larger than p.",
		Source: "Huang et al. 2018 (GPipe), arXiv 1811.06965; Narayanan et al. 2021, arXiv 2104.04473",
		How:    "simulated steps of gpipe and 1f1b with 8 stages and 8 to 256 micro-batches, compared with the formula",
		Rule: "holds if no step is more than 1 % of its time off the formula, and 32 micro-batches a stage idle " +
			"below 5 %",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			worst, list := 0.0, []Figure(nil)
			for _, micro := range []int{8, 32, 256} {
				for _, schedule := range []string{"gpipe", "1f1b"} {
					share, err := idle(schedule, stages, micro)
					if err != nil {
						return nil, err
					}
					worst = max(worst, math.Abs(share-float64(stages-1)/float64(micro+stages-1)))
					if schedule == "1f1b" {
						list = append(list, Figure{fmt.Sprintf("idle with %d micro-batches", micro), 100 * share, "%"})
					}
				}
			}
			return append(list, Figure{"off the formula at most", 100 * worst, "%"}), nil
		},
		Judge: func(f *Figures) Verdict {
			return choose(f.Of("off the formula at most") <= 1 && f.Of("idle with 256 micro-batches") < 5,
				fmt.Sprintf("8 stages idle %s of a step with 8 micro-batches, %s with 32 and %s with 256, at most "+
					"%s of the step off the formula.", f.Text("idle with 8 micro-batches"),
					f.Text("idle with 32 micro-batches"),
					f.Text("idle with 256 micro-batches"), f.Text("off the formula at most")))
		},
	}
}

func interleaved() Claim {
	const stages, micro = 8, 16
	return Claim{
		Number: 47, Seconds: 1,
		Says: "The interleaved schedule, with several chunks of layers on each stage, is that of PipeDream, whose " +
			"stages never wait.",
		Source: "guides; PipeDream is Harlap et al. 2018, arXiv 1806.03377, interleaving Narayanan et al. 2021, " +
			"arXiv 2104.04473",
		How:  "simulated steps of 1f1b, interleaved:2 and interleaved:4 with 8 stages and 16 micro-batches",
		Rule: "holds if the interleaved steps idle below 1 %, as PipeDream's do without an end of the step",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			var list []Figure
			for _, schedule := range []string{"1f1b", "interleaved:2", "interleaved:4"} {
				share, err := idle(schedule, stages, micro)
				if err != nil {
					return nil, err
				}
				list = append(list, Figure{"idle with " + schedule, 100 * share, "%"})
			}
			return list, nil
		},
		Judge: func(f *Figures) Verdict {
			return choose(f.Of("idle with interleaved:4") < 1, fmt.Sprintf("Stages idle %s with 1f1b, %s with two "+
				"chunks and %s with four: less, but every step still ends before the next begins.",
				f.Text("idle with 1f1b"),
				f.Text("idle with interleaved:2"), f.Text("idle with interleaved:4")))
		},
	}
}
