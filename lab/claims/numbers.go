package claims

import (
	"context"
	"fmt"
	"math"

	"anneal/tensor"
)

// numberClaims are about number formats.
func numberClaims() []Claim { return []Claim{lossScaling(), doubleMasters(), formats()} }

// A format rounds a number to its stored value.
type format struct {
	name  string
	round func(float64) float64
}

var (
	fp16 = format{"FP16", func(x float64) float64 { return float64(tensor.F16FromFloat32(float32(x)).Float32()) }}
	bf16 = format{"BF16", func(x float64) float64 { return float64(tensor.BF16FromFloat32(float32(x)).Float32()) }}
	tf32 = format{"TF32", func(x float64) float64 { return float64(tensor.RoundTF32(float32(x))) }}
	fp32 = format{"FP32", func(x float64) float64 { return float64(float32(x)) }}
	fp64 = format{"FP64", func(x float64) float64 { return x }}
)

// mantissa returns the number of mantissa bits, from the smallest step above 1.
func (f format) mantissa() (bits int) {
	for x := 1 + math.Ldexp(1, -bits-1); f.round(x) == x && bits < 52; x = 1 + math.Ldexp(1, -bits-1) {
		bits++
	}
	return bits
}

// largest returns the largest finite number: all bits of the mantissa, at the largest exponent.
func (f format) largest() float64 {
	x := 2 - math.Ldexp(1, -f.mantissa())
	for !math.IsInf(f.round(2*x), 0) && 2*x <= math.MaxFloat32 {
		x *= 2
	}
	return x
}

// smallest returns the smallest positive number.
func (f format) smallest() float64 {
	x := 1.0
	for f.round(x/2) > 0 && x > math.Ldexp(1, -1000) {
		x /= 2
	}
	return x
}

func lossScaling() Claim {
	return Claim{
		Number: 35, Seconds: 1,
		Says:   "FP16 and BF16 need a scaled loss because they are imprecise.",
		Source: "guides after Micikevicius et al. 2017, arXiv 1710.03740",
		How: "how finely and how far down both formats go, and which share of normal gradients of size 1e-8 " +
			"becomes zero",
		Rule: "holds if the coarser format loses more gradients than the finer one",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			var list []Figure
			rng := tensor.NewRNG(1, tensor.PurposeInit, 0)
			values := make([]float64, 1<<16)
			for i := range values {
				values[i] = 1e-8 * rng.Normals(uint64(i))[0]
			}
			for _, f := range []format{fp16, bf16} {
				lost := 0
				for _, g := range values {
					if f.round(g) == 0 {
						lost++
					}
				}
				list = append(list, Figure{"steps in " + f.name, math.Ldexp(1, -f.mantissa()), "relative"},
					Figure{"smallest " + f.name, f.smallest(), ""},
					Figure{"lost in " + f.name, 100 * float64(lost) / float64(len(values)), "%"})
			}
			return list, nil
		},
		Judge: func(f *Figures) Verdict {
			coarse, fine := f.Of("lost in BF16"), f.Of("lost in FP16")
			if f.Of("steps in FP16") > f.Of("steps in BF16") {
				coarse, fine = fine, coarse
			}
			return choose(coarse > fine, fmt.Sprintf("FP16 has steps of %s and loses %s, as it ends at %s; BF16 "+
				"has steps of %s, loses %s and ends at %s: range decides, not precision.", f.Text("steps in FP16"),
				f.Text("lost in FP16"), f.Text("smallest FP16"), f.Text("steps in BF16"), f.Text("lost in BF16"),
				f.Text("smallest BF16")))
		},
	}
}

func doubleMasters() Claim {
	return Claim{
		Number: 36, Seconds: 1,
		Says:   "Master weights should be kept in FP64.",
		Source: "tutorials on mixed precision",
		How: "a weight of 1 that grows by 1e-5 in each of 10,000 updates, rounded after each: how far it is off at " +
			"the end",
		Rule: "holds if FP32 misses more than 1 % of the growth",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			const updates, size = 10_000, 1e-5
			var list []Figure
			for _, f := range []format{bf16, fp32, fp64} {
				w := 1.0
				for range updates {
					w = f.round(w + size)
				}
				list = append(list, Figure{"missed in " + f.name,
					100 * math.Abs(w-1-updates*size) / (updates * size), "%"})
			}
			return list, nil
		},
		Judge: func(f *Figures) Verdict {
			return choose(f.Of("missed in FP32") > 1, fmt.Sprintf("FP32 misses %s of the growth, FP64 %s, BF16 %s.",
				f.Text("missed in FP32"), f.Text("missed in FP64"), f.Text("missed in BF16")))
		},
	}
}

func formats() Claim {
	return Claim{
		Number: 37, Seconds: 1,
		Says:   "FP16 ends at 65,504, BF16 has the range of FP32 with 7 mantissa bits, and TF32 takes 19 bits.",
		Source: "IEEE 754; NVIDIA on TF32",
		How:    "the rounding of each format, probed: mantissa bits, largest number",
		Rule:   "holds if all of these are true",
		Measure: func(context.Context, *Env) ([]Figure, error) {
			exponent := math.Ceil(math.Log2(math.Log2(tf32.largest()))) + 1
			return []Figure{
				{"largest FP16", fp16.largest(), ""},
				{"largest BF16", bf16.largest(), ""},
				{"largest FP32", fp32.largest(), ""},
				{"BF16, behind the point", float64(bf16.mantissa()), "bits"},
				{"TF32, in all", 1 + exponent + float64(tf32.mantissa()), "bits"},
			}, nil
		},
		Judge: func(f *Figures) Verdict {
			range32 := f.Of("largest BF16") / f.Of("largest FP32")
			return choose(f.Of("largest FP16") == 65504 && near(range32, 1,
				0.01) && f.Of("BF16, behind the point") == 7 &&
				f.Of("TF32, in all") == 19, fmt.Sprintf("FP16 ends at %s, BF16 at %s and FP32 at %s; BF16 has %s "+
				"of mantissa, TF32 takes %s.", f.Text("largest FP16"), f.Text("largest BF16"),
				f.Text("largest FP32"),
				f.Text("BF16, behind the point"), f.Text("TF32, in all")))
		},
	}
}
