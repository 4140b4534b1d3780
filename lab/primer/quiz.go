package primer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// A Question has one right answer. All of it is computed from the tables.
type Question struct {
	Text    string   `json:"question"`
	Choices []string `json:"choices"`
	Right   int      `json:"right"` // number of the right choice, from 0
	Why     string   `json:"why"`
	Topic   string   `json:"topic"` // of anneal explain
}

// Quiz returns n different questions, at most one of each kind until all kinds have been asked. The same seed gives the
// same questions.
func Quiz(seed uint64, n int) ([]Question, error) {
	r := rand.New(rand.NewPCG(seed, 0))
	kinds := []func(*rand.Rand) (draft, error){
		largest, bits, relative, lossScale, optimizerBytes, mixedBytes, zeroStage, zeroRanks, recomputing, chinchilla,
		operations,
	}
	r.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	var list []Question
	asked := map[string]bool{}
	for tries := 0; len(list) < n && tries < 100*n; tries++ {
		d, err := kinds[tries%len(kinds)](r)
		if err != nil {
			return nil, err
		}
		if !asked[d.text] {
			asked[d.text] = true
			list = append(list, d.question(r))
		}
	}
	return list, nil
}

// A draft is a question whose choices have no order yet.
type draft struct {
	topic, text string
	right, why  string
	wrong       []string // three different ones are used
}

func (d draft) question(r *rand.Rand) Question {
	r.Shuffle(len(d.wrong), func(i, j int) { d.wrong[i], d.wrong[j] = d.wrong[j], d.wrong[i] })
	choices := []string{d.right}
	for _, w := range d.wrong {
		if !slices.Contains(choices, w) && len(choices) < 4 {
			choices = append(choices, w)
		}
	}
	r.Shuffle(len(choices), func(i, j int) { choices[i], choices[j] = choices[j], choices[i] })
	return Question{d.text, choices, slices.Index(choices, d.right), d.why, d.topic}
}

// pick returns a random element of a list.
func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// ofFormats asks for a property of a format; wrong answers are the values of other formats.
func ofFormats(r *rand.Rand, text string, of, why func(f Format) string) draft {
	f := pick(r, Formats)
	d := draft{"formats", fmt.Sprintf(text, strings.ToUpper(f.Name)), of(f), why(f), nil}
	for _, g := range Formats {
		d.wrong = append(d.wrong, of(g))
	}
	return d
}

func largest(r *rand.Rand) (draft, error) {
	of := func(f Format) string { return power(f.Largest()) }
	return ofFormats(r, "What is the largest number of %s?", of, func(f Format) string {
		return fmt.Sprintf("%d exponent bits reach 2^%d, and %d mantissa bits nearly double that.", f.Exponent,
			int(math.Log2(f.Largest())), f.Mantissa)
	}), nil
}

func bits(r *rand.Rand) (draft, error) {
	of := func(f Format) string { return fmt.Sprintf("%d and %d", f.Exponent, f.Mantissa) }
	return ofFormats(r, "How many exponent and mantissa bits has %s?", of, func(f Format) string {
		return fmt.Sprintf("The exponent decides the range, up to %s; the mantissa the precision, %s.",
			power(f.Largest()), power(f.Epsilon()))
	}), nil
}

func relative(r *rand.Rand) (draft, error) {
	of := func(f Format) string { return power(f.Epsilon()) }
	return ofFormats(r, "How far is the next number after 1 in %s?", of, func(f Format) string {
		return fmt.Sprintf("2^−%d, from the mantissa bits.", f.Mantissa)
	}), nil
}

func lossScale(*rand.Rand) (draft, error) {
	half, _ := formatOf("fp16")
	brain, _ := formatOf("bf16")
	return draft{
		topic: "formats",
		text:  "Why does FP16 need a loss scale, and BF16 does not?",
		right: fmt.Sprintf("FP16 has nothing below %s, and small gradients become 0", power(half.Smallest())),
		why: fmt.Sprintf("BF16 goes down to %s: its exponent has the 8 bits of FP32, that of FP16 has 5.",
			power(brain.Smallest())),
		wrong: []string{
			"FP16 rounds more coarsely than BF16", "FP16 sums are kept in FP16", "FP16 takes more memory",
		},
	}, nil
}

func optimizerBytes(r *rand.Rand) (draft, error) {
	name := pick(r, []string{"adamw", "lion", "adam8bit", "ademamix", "sophia"})
	each, n, err := StateOf("7B", name)
	d := draft{
		topic: "optimizers",
		text:  fmt.Sprintf("How much state does %s keep for LLaMA 2 7B?", name),
		right: gigabytes(each * n),
		why:   fmt.Sprintf("%.3g bytes for each of %.3g parameters.", each, n),
	}
	for _, x := range []float64{1, 2, 4, 8, 12, 16} {
		d.wrong = append(d.wrong, gigabytes(x*n))
	}
	return d, err
}

func mixedBytes(r *rand.Rand) (draft, error) {
	s := pick(r, Splits[:3])
	return draft{
		topic: "mixed-precision",
		text: fmt.Sprintf("How many bytes a parameter take weights, gradients and AdamW's state? The way: %s.",
			s.Name),
		right: fmt.Sprintf("%g", s.Bytes()),
		why: fmt.Sprintf("%g of weights, %g of gradients, %g of an FP32 copy, %g of two moments.", s.Weights,
			s.Gradients, s.Master, s.Moments),
		wrong: []string{"8", "12", "14", "16", "18", "20"},
	}, nil
}

func zeroStage(r *rand.Rand) (draft, error) {
	what := []string{
		"nothing", "the optimizer's state", "optimizer's state and gradients",
		"optimizer's state, gradients and weights",
	}
	stage := 1 + r.IntN(3)
	return draft{
		topic: "zero",
		text:  fmt.Sprintf("What does ZeRO %d divide among the ranks?", stage),
		right: what[stage],
		why: fmt.Sprintf("Each stage divides one more: on 64 ranks %.3g bytes a parameter are left of 16.",
			ZeROBytes(stage, 64)),
		wrong: what,
	}, nil
}

func zeroRanks(r *rand.Rand) (draft, error) {
	n, stage := 1<<(2+r.IntN(5)), 1+r.IntN(3)
	keeps := func(stage, n int) string { return gigabytes(7 * gigabyte * ZeROBytes(stage, n)) }
	d := draft{
		topic: "zero",
		text: fmt.Sprintf("7B parameters, mixed precision with AdamW, ZeRO %d on %d ranks: what state does each keep?",
			stage, n),
		right: keeps(stage, n),
		why: fmt.Sprintf("%.3g bytes a parameter: what the stage divides of 2 + 2 + 12, by %d.", ZeROBytes(stage, n),
			n),
	}
	for s := range 4 {
		d.wrong = append(d.wrong, keeps(s, n), keeps(s, 2*n))
	}
	return d, nil
}

func recomputing(r *rand.Rand) (draft, error) {
	strategy := pick(r, Recomputations[1:])
	kept, extra, err := Recomputed(strategy)
	if err != nil {
		return draft{}, err
	}
	all, _, err := Recomputed("none")
	percent := func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }
	return draft{
		topic: "recompute",
		text: fmt.Sprintf("How many more operations does a step of LLaMA 2 7B take with memory.recompute = %s?",
			strategy),
		right: percent(extra),
		why: fmt.Sprintf("All of a forward pass again would be a third. Activations shrink to %s.",
			percent(kept/all)),
		wrong: []string{percent(1), percent(0.5), percent(1.0 / 3), percent(0.15), percent(0.04), percent(0)},
	}, err
}

// chinchillaRatio is the number of tokens per parameter of Hoffmann et al. (2022, arXiv 2203.15556).
const chinchillaRatio = 20

// billions formats a number of billions: 20B, 1.4T.
func billions(n float64) string {
	if n >= 1000 {
		return fmt.Sprintf("%.3gT", n/1000)
	}
	return fmt.Sprintf("%.3gB", n)
}

func chinchilla(r *rand.Rand) (draft, error) {
	n := pick(r, []float64{0.125, 0.5, 1, 3, 7, 13, 70})
	tokens := func(ratio float64) string { return billions(n * ratio) }
	return draft{
		topic: "scaling",
		text:  fmt.Sprintf("How many tokens are compute-optimal for %gB parameters, by Chinchilla's rule?", n),
		right: tokens(chinchillaRatio),
		why: "About 20 a parameter (Hoffmann et al. 2022). Models that serve many are trained on far more: `anneal " +
			"scaling predict --serve`.",
		wrong: []string{tokens(1), tokens(2), tokens(5), tokens(100)},
	}, nil
}

func operations(r *rand.Rand) (draft, error) {
	n := pick(r, []float64{1e9, 7e9, 70e9})
	d := chinchillaRatio * n
	flops := func(each float64) string { return power(each * n * d) }
	return draft{
		topic: "scaling",
		text: fmt.Sprintf("How many operations does it take to train %s parameters on %s tokens?", billions(n/1e9),
			billions(d/1e9)),
		right: flops(6),
		why:   "6 for each parameter and token: 2 forward and 4 backward. Attention comes on top.",
		wrong: []string{flops(1), flops(2), flops(3), flops(12)},
	}, nil
}
