package nn

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// long is LongRoPE (Ding et al. 2024, arXiv 2402.13753): pair i turns at f/λ[i], with a factor of its own that a
// search over the trained model has found; this package does not search. The factors Long are for models with more
// positions than the original context L0. The factors Short are for models with at most L0 positions, which the long
// factors would make worse. Without Short, Long applies to both. Queries and keys are also multiplied by
// AttentionFactor, √(1 + ln s/ln L0).
//
// Here the context of the model decides which list applies, whatever the length of the rows. Use it for checkpoints
// that have it (Phi-3); to stretch a model without a search, prefer yarn.
func (s RoPEScaling) long(f []float64, l Lengths) {
	factors := s.Long
	if s.Short != "" && l.Positions <= l.Original {
		factors = s.Short
	}
	for i, x := range factors.Values() {
		f[i] /= x
	}
}

// longAttention returns long's factor of queries and keys.
func (s RoPEScaling) longAttention(original int) float64 {
	if s.Factor <= 1 || original <= 1 {
		return 1
	}
	return math.Sqrt(1 + math.Log(s.Factor)/math.Log(float64(original)))
}

// Factors are a list of numbers above 0 in their text form, such as 1,1.05,2.5. They are text so that scalings compare
// with ==; layers with equal scalings share one table.
type Factors string

// FactorsOf returns the text form of a list.
func FactorsOf(list []float64) Factors {
	text := make([]string, len(list))
	for i, x := range list {
		text[i] = strconv.FormatFloat(x, 'g', -1, 64)
	}
	return Factors(strings.Join(text, ","))
}

func parseFactors(text string) (Factors, error) {
	var list []float64
	for word := range strings.SplitSeq(text, ",") {
		x, err := parseAbove0(word)
		if err != nil {
			return "", err
		}
		list = append(list, x)
	}
	return FactorsOf(list), nil
}

// Values returns the numbers; they are nil for an empty text.
func (f Factors) Values() []float64 {
	if f == "" {
		return nil
	}
	var list []float64
	for word := range strings.SplitSeq(string(f), ",") {
		x, err := parseAbove0(word)
		if err != nil {
			panic("nn: factors that were not parsed: " + err.Error())
		}
		list = append(list, x)
	}
	return list
}

func parseAbove0(word string) (float64, error) {
	x, err := strconv.ParseFloat(word, 64)
	if err != nil || !(x > 0 && x <= 1<<20) {
		return 0, fmt.Errorf("%s is not a number above 0 and at most %d", word, 1<<20)
	}
	return x, nil
}

// CheckPairs reports lists of factors that do not have one for each pair of the rotated elements of a head.
func (s RoPEScaling) CheckPairs(rotated int) error {
	for name, list := range map[string]Factors{"short": s.Short, "long": s.Long} {
		if n := len(list.Values()); list != "" && n != rotated/2 {
			return fmt.Errorf("%s of %s has %d factors, but %d rotated elements of a head are %d pairs", name, s.Kind,
				n, rotated, rotated/2)
		}
	}
	return nil
}
