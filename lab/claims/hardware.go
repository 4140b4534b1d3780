package claims

import (
	"context"
	"fmt"
	"slices"

	"anneal/bench"
	"anneal/hardware"
	"anneal/internal/isa"
)

// hardwareClaims are about the speed of devices.
func hardwareClaims() []Claim { return []Claim{doubledSpeed(), utilisation(), matrixUnits()} }

func doubledSpeed() Claim {
	return Claim{
		Number: 2, Seconds: 25,
		Says:   "Training in BF16 is twice as fast as in FP32.",
		Source: "Micikevicius et al. 2017, arXiv 1710.03740; NVIDIA on tensor cores",
		How:    "tokens a second of one training step in fp32 and in bf16, two models, on this machine's kernels",
		Rule: "holds if both models are 1.8 times as fast or more; holds when products are most of a step if only " +
			"the larger is; not measurable on a machine whose peak is the same for both",
		Measure: func(ctx context.Context, _ *Env) ([]Figure, error) {
			tier, err := isa.Choose()
			if err != nil {
				return nil, err
			}
			peak := bench.MeasurePeak(tier, 0)
			list := []Figure{{"peak in bf16 over fp32", peak.BF16 / peak.FP32, "times"}}
			for _, shape := range []string{"demo", "tiny"} {
				var speed [2]float64
				for i, precision := range []string{"fp32", "bf16"} {
					r, err := bench.Step(ctx, bench.Options{Shape: shape, Precision: precision, Seconds: 3})
					if err != nil {
						return nil, err
					}
					speed[i] = r.TokensPerSecond
				}
				list = append(list, Figure{shape + " model in fp32", speed[0], "tokens/s"},
					Figure{shape + " model in bf16", speed[1], "tokens/s"})
			}
			return list, nil
		},
		Judge: func(f *Figures) Verdict {
			peak := f.Of("peak in bf16 over fp32")
			demo := f.Of("demo model in bf16") / f.Of("demo model in fp32")
			tiny := f.Of("tiny model in bf16") / f.Of("tiny model in fp32")
			why := fmt.Sprintf("In bf16 a model of width 128 trains %.2f times as fast (%s instead of %s), one of "+
				"width 384 %.2f times; the peak of the kernels is %.2f times as high.", demo,
				f.Text("demo model in bf16"),
				f.Text("demo model in fp32"), tiny, peak)
			switch {
			case peak < 1.1:
				return elsewhere(why + " It takes a processor with instructions for BF16.")
			case demo < 1.8 && tiny >= 1.8:
				return when("products are most of a step", why)
			}
			return choose(demo >= 1.8 && tiny >= 1.8, why)
		},
	}
}

func matrixUnits() Claim {
	return Claim{
		Number: 55, Seconds: 2,
		Says:   "Matrix instructions multiply BF16 twice as fast as FP32.",
		Source: "NVIDIA, data sheet of the A100 (312 and 156 TFLOP/s)",
		How:    "the best multiply-add instructions of this processor in both formats, on registers alone",
		Rule:   "holds if BF16 is 1.8 times as fast or more; not measurable without instructions for BF16",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			tier, err := isa.Choose()
			if err != nil {
				return nil, err
			}
			peak := bench.MeasurePeak(tier, 1)
			return []Figure{{"BF16", peak.BF16, "GFLOP/s"}, {"FP32", peak.FP32, "GFLOP/s"}}, nil
		},
		Judge: func(f *Figures) Verdict {
			ratio := f.Of("BF16") / f.Of("FP32")
			why := fmt.Sprintf("One core reaches %s in BF16 and %s in FP32: %.2f times.", f.Text("BF16"),
				f.Text("FP32"), ratio)
			if ratio < 1.1 {
				return elsewhere(why + " It takes a processor with instructions for BF16.")
			}
			return choose(ratio >= 1.8, why)
		},
	}
}

func utilisation() Claim {
	return Claim{
		Number: 27, Seconds: 2,
		Says:   "FlashAttention 2 and 3 raise the utilisation of GPUs in training from 35 % to more than 55 %.",
		Source: "Dao 2023, arXiv 2307.08691; Shah et al. 2024, arXiv 2407.08608",
		How: "not here: it takes A100 and H100 cards; of the published runs that plans are compared with, the " +
			"share of the peak that dense models reach on A100 in two bytes, by what computes attention",
		Rule: "not measurable here without such cards",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			runs, err := bench.PublishedRuns()
			if err != nil {
				return nil, err
			}
			shares := map[bool][]float64{}
			for _, p := range runs {
				card, s := p.Run.Cluster.Accelerator, &p.Run.Shape
				if s.Experts > 0 || p.Accelerator != "a100-80gb" && card.Name != "a100-80gb" {
					continue
				}
				flops := s.FLOPs() * float64(s.Context*p.Run.Batch)
				fused := p.Run.Stack.Attention != "unfused"
				shares[fused] = append(shares[fused],
					flops/p.Published/float64(p.Run.Cluster.Devices)/card.Peak[hardware.BF16])
			}
			var list []Figure
			for fused, name := range map[bool]string{false: "unfused attention", true: "FlashAttention"} {
				if len(shares[fused]) == 0 {
					return nil, fmt.Errorf("there are no published runs with %s", name)
				}
				slices.Sort(shares[fused])
				n := len(shares[fused])
				list = append(list, Figure{name + ", runs", float64(n), ""},
					Figure{name + ", median", 100 * shares[fused][n/2], "% of peak"},
					Figure{name + ", best", 100 * shares[fused][n-1], "% of peak"})
			}
			return sorted(list), nil
		},
		Judge: func(f *Figures) Verdict {
			return elsewhere(fmt.Sprintf("It takes A100 and H100 cards. Of published runs on A100, %s with unfused "+
				"attention reach %s in the median and %s at best, %s with FlashAttention %s and %s; they differ in "+
				"more than attention.",
				f.Text("unfused attention, runs"), f.Text("unfused attention, median"),
				f.Text("unfused attention, best"),
				f.Text("FlashAttention, runs"), f.Text("FlashAttention, median"), f.Text("FlashAttention, best")))
		},
	}
}
