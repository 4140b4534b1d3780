package primer

import (
	"fmt"
	"math"
)

// A Format is a binary floating-point format: a sign, exponent bits and mantissa bits.
type Format struct {
	Name               string
	Exponent, Mantissa int
	Stored             int  // bits in memory, if not all of them count
	Extended           bool // the largest exponent also holds numbers, and one NaN; there is no infinity
	For                string
}

// Formats lists the formats of training, from wide to narrow.
var Formats = []Format{
	{"fp64", 11, 52, 64, false, "the reference of tests"},
	{"fp32", 8, 23, 32, false, "weights, sums, optimizer state"},
	{"tf32", 8, 10, 32, false, "operands of products of FP32 numbers"},
	{"bf16", 8, 7, 16, false, "operands and activations: the range of FP32, so no loss scale"},
	{"fp16", 5, 10, 16, false, "operands and activations, with a loss scale"},
	{"fp8 e4m3", 4, 3, 8, true, "operands of the forward pass, scaled"},
	{"fp8 e5m2", 5, 2, 8, false, "gradients, scaled"},
}

// formatOf returns the format with a name such as bf16, fp8, e4m3 or mxfp8.
func formatOf(name string) (Format, bool) {
	if name == "mxfp8" {
		name = "e4m3"
	}
	for _, f := range Formats {
		if f.Name == name || f.Name == "fp8 "+name || f.Name == name+" e4m3" {
			return f, true
		}
	}
	return Format{}, false
}

func (f Format) bias() int { return 1<<(f.Exponent-1) - 1 }

// Largest is the largest finite number.
func (f Format) Largest() float64 {
	top, below := 1<<f.Exponent-2-f.bias(), 2-math.Ldexp(1, -f.Mantissa)
	if f.Extended {
		top, below = top+1, 2-math.Ldexp(1, 1-f.Mantissa) // all ones are a NaN
	}
	return math.Ldexp(below, top)
}

// SmallestNormal is the smallest positive number with full precision.
func (f Format) SmallestNormal() float64 { return math.Ldexp(1, 1-f.bias()) }

// Smallest is the smallest positive number.
func (f Format) Smallest() float64 { return math.Ldexp(1, 1-f.bias()-f.Mantissa) }

// Epsilon is the distance from 1 to the next larger number.
func (f Format) Epsilon() float64 { return math.Ldexp(1, -f.Mantissa) }

func formatTable() (*Table, error) {
	t := &Table{
		Name: "formats", Title: "Number formats",
		Columns: []string{
			"format", "bits", "exponent", "mantissa", "largest", "smallest normal", "smallest", "1 and the next", "for",
		},
		Notes: "bits: in memory; TF32 takes the place of FP32, and 19 of its bits count. smallest: below the " +
			"smallest normal number precision is lost bit by bit. 1 and the next: their distance, the relative " +
			"precision. E4M3 has no infinity (Micikevicius et al. 2022, arXiv 2209.05433). MXFP8 is E4M3 with a " +
			"scale, a power of two in a byte, for every 32 numbers: 8.25 bits each.",
	}
	for _, f := range Formats {
		t.Rows = append(t.Rows, []string{
			f.Name, fmt.Sprint(f.Stored), fmt.Sprint(f.Exponent), fmt.Sprint(f.Mantissa), power(f.Largest()),
			power(f.SmallestNormal()), power(f.Smallest()), power(f.Epsilon()), f.For,
		})
	}
	return t, nil
}

// power writes a number with three digits.
func power(x float64) string { return fmt.Sprintf("%.3g", x) }
