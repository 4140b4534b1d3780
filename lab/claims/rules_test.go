package claims

import (
	"strings"
	"testing"
)

// A rule has figures on both sides of that of a claim: names, and the ruling that values give.
type rule struct {
	claim int
	names string // with a semicolon between them
	cases []judged
}

type judged struct {
	want   Ruling
	values []float64
}

// rules are figures on both sides of each rule: their names, and what the rule makes of which values.
var rules = []rule{
	{1, "state in fp32; state in bf16; activations in fp32; activations in bf16; all in bf16 over fp32", []judged{
		{Holds, []float64{16, 8, 20, 10, 0.6}},
		{HoldsWhen, []float64{16, 16, 20, 12, 0.61}},
		{DoesNotHold, []float64{16, 16, 20, 13, 0.9}},
	}},
	{2, "peak in bf16 over fp32; demo model in fp32; demo model in bf16; tiny model in fp32; tiny model in bf16",
		[]judged{
			{Holds, []float64{2, 10, 18, 10, 18}},
			{HoldsWhen, []float64{2, 10, 17, 10, 18}},
			{DoesNotHold, []float64{2, 10, 17, 10, 17}},
			{NotMeasurable, []float64{1, 10, 9, 10, 9}},
		}},
	{3, "activations, all kept; activations, every layer again; less memory; less memory of stored scores; more " +
		"operations", []judged{
		{Holds, []float64{10, 2, 4, 10, 35}},
		{HoldsWhen, []float64{10, 2, 4, 11, 35}},
		{DoesNotHold, []float64{10, 2, 4, 11, 36}},
		{DoesNotHold, []float64{10, 2, 3.9, 8, 30}},
	}},
	{4, "every layer; every √L layers", []judged{
		{Holds, []float64{2, 1.5}},
		{DoesNotHold, []float64{1.89, 1.5}},
		{DoesNotHold, []float64{2, 1.39}},
	}},
	{5, "32 layers; 64 layers; of another layer", []judged{
		{Holds, []float64{2, 2.19, 1}},
		{DoesNotHold, []float64{2, 2.2, 1}},
	}},
	{6, "with products; scores alone", []judged{
		{Holds, []float64{1.2, 1.1}},
		{DoesNotHold, []float64{1.19, 1.1}},
	}},
	{7, "one micro-batch; eight, one by one; eight, as a sum", []judged{
		{Holds, []float64{10, 10, 10}},
		{HoldsWhen, []float64{10, 80, 10}},
		{DoesNotHold, []float64{10, 80, 20}},
	}},
	{9, "state of 7e9 parameters; state of a rank of four; all of a rank of four; fits", []judged{
		{Holds, []float64{112, 28, 80, 1}},
		{HoldsWhen, []float64{112, 28, 90, 0}},
		{DoesNotHold, []float64{126, 28, 80, 1}},
	}},
	{10, "state of a replica; state of a rank of eight", []judged{
		{Holds, []float64{1120, 140}},
		{DoesNotHold, []float64{1120, 160}},
	}},
	{11, "state of a rank; all of a rank; least cards for the state; least cards for all", []judged{
		{Holds, []float64{60, 80, 6, 8}},
		{HoldsWhen, []float64{80, 90, 8, 9}},
		{DoesNotHold, []float64{140, 200, 14, 16}},
	}},
	{12, "moments; weights in FP32", []judged{
		{Holds, []float64{560, 280}},
		{DoesNotHold, []float64{280, 280}},
	}},
	{13, "AdamW; Lion; with weights and gradients", []judged{
		{Holds, []float64{8, 2.9, 1.5}},
		{DoesNotHold, []float64{8, 3, 1.5}},
	}},
	{14, "without momentum; with momentum", []judged{
		{Holds, []float64{4.4, 8}},
		{HoldsWhen, []float64{0.01, 4}},
		{DoesNotHold, []float64{0.01, 8}},
	}},
	{15, "8-bit Adam", []judged{
		{Holds, []float64{2.1}},
		{DoesNotHold, []float64{2.2}},
	}},
	{26, "scores of one layer; activations, all kept; activations, every layer again", []judged{
		{Holds, []float64{600, 80, 10}},
		{HoldsWhen, []float64{600, 90, 60}},
		{DoesNotHold, []float64{600, 190, 90}},
	}},
	{27, "unfused attention, runs; unfused attention, median; unfused attention, best; FlashAttention, runs; " +
		"FlashAttention, median; FlashAttention, best", []judged{
		{NotMeasurable, []float64{9, 35, 50, 9, 50, 60}},
	}},
	{28, "strided, stride √n; Longformer; BigBird; full", []judged{
		{Holds, []float64{1.5, 1.5, 1.5, 2}},
		{HoldsWhen, []float64{1.5, 1, 1, 2}},
		{DoesNotHold, []float64{1.7, 1, 1, 2}},
	}},
	{29, "Longformer depends on the seed; BigBird depends on the seed", []judged{
		{Holds, []float64{1, 1}},
		{DoesNotHold, []float64{0, 1}},
	}},
	{30, "branches in every layer; largest dilation; layers differ", []judged{
		{Holds, []float64{1, 8, 1}},
		{DoesNotHold, []float64{4, 8, 0}},
	}},
	{31, "full; linear; linear over full with 32,768 tokens", []judged{
		{Holds, []float64{1.9, 1, 0.1}},
		{DoesNotHold, []float64{1.9, 1.3, 0.1}},
		{DoesNotHold, []float64{1.1, 1, 0.9}},
	}},
	{33, "activations of 131,072 tokens, one rank; activations of 131,072 tokens, eight ranks; all of a million " +
		"tokens, each of 64 ranks; operations a token, over a context of 4,096", []judged{
		{Holds, []float64{80, 10, 80, 20}},
		{DoesNotHold, []float64{80, 20, 80, 20}},
		{DoesNotHold, []float64{80, 10, 90, 20}},
	}},
	{44, "a ramp saves, of 4096; a ramp saves, of 65536; short sequences save at most, of 4096; short sequences " +
		"save at most, of 65536", []judged{
		{Holds, []float64{5, 10, 30, 60}},
		{HoldsWhen, []float64{1, 10, 30, 60}},
		{DoesNotHold, []float64{1, 4, 30, 60}},
	}},
	{46, "idle with 8 micro-batches; idle with 32 micro-batches; idle with 256 micro-batches; off the formula at " +
		"most", []judged{
		{Holds, []float64{40, 20, 4, 1}},
		{DoesNotHold, []float64{40, 20, 4, 2}},
		{DoesNotHold, []float64{40, 20, 6, 0}},
	}},
	{47, "idle with 1f1b; idle with interleaved:2; idle with interleaved:4", []judged{
		{Holds, []float64{30, 1, 0.5}},
		{DoesNotHold, []float64{30, 18, 9}},
	}},
	{48, "sent for a layer; waiting with 8 ranks; waiting with 16 ranks", []judged{
		{Holds, []float64{1, 2, 9}},
		{DoesNotHold, []float64{2, 2, 9}},
		{DoesNotHold, []float64{1, 2, 19}},
	}},
	{49, "in the table, one way; both ways", []judged{
		{NotMeasurable, []float64{450, 900}},
	}},
	{50, "ranks; state, replicated; all, replicated; state, sharded; all, sharded", []judged{
		{Holds, []float64{1024, 50, 80, 20, 30}},
		{HoldsWhen, []float64{1024, 80, 90, 20, 30}},
		{DoesNotHold, []float64{1024, 80, 190, 80, 90}},
	}},
	{54, "gradients; state without a copy of the weights; state with a two-byte copy", []judged{
		{Holds, []float64{2, 14, 16}},
		{HoldsWhen, []float64{4, 16, 18}},
		{DoesNotHold, []float64{4, 18, 20}},
	}},
	{55, "BF16; FP32", []judged{
		{Holds, []float64{200, 100}},
		{DoesNotHold, []float64{170, 100}},
		{NotMeasurable, []float64{100, 100}},
	}},
	{59, "ranks; same weights", []judged{
		{Holds, []float64{2, 1}},
		{DoesNotHold, []float64{2, 0}},
	}},
	{8, "usual rate, clipped; usual rate, not clipped; high rate, clipped; high rate, not clipped", []judged{
		{Holds, []float64{2.9, 3, 3.9, 4}},
		{HoldsWhen, []float64{3, 3, 3.9, 4}},
		{DoesNotHold, []float64{3, 3, 4, 4}},
		{DoesNotHold, []float64{3.1, 3, 3, 4}},
	}},
	{16, "AdamW, 150 steps; Sophia, 75 steps; Sophia, 150 steps", []judged{
		{Holds, []float64{3, 3.02, 2.9}},
		{DoesNotHold, []float64{3, 3.04, 2.9}},
	}},
	{17, "off orthogonal, Muon; off orthogonal, momentum last", []judged{
		{Holds, []float64{0.6, 0.6}},
		{DoesNotHold, []float64{0.2, 0.6}},
	}},
	{18, "AdamW, small gradients; AdamW, large gradients; Adam, small gradients; Adam, large gradients", []judged{
		{Holds, []float64{0.02, 0.02, 0.2, 0.002}},
		{DoesNotHold, []float64{0.02, 0.03, 0.2, 0.002}},
		{DoesNotHold, []float64{0.02, 0.02, 0.02, 0.02}},
	}},
	{19, "β2 of GPT-3; β2 of LLaMA 2; a burst halves with 0.95 in; a burst halves with 0.999 in", []judged{
		{Holds, []float64{0.95, 0.95, 13, 692}},
		{DoesNotHold, []float64{0.95, 0.999, 13, 692}},
	}},
	{20, "warm-up of llama2-7b; warm-up of gpt3-175b; warm-up of chinchilla-70b", []judged{
		{Holds, []float64{2, 0.1, 0.2}},
		{DoesNotHold, []float64{2.1, 0.1, 0.2}},
		{DoesNotHold, []float64{2, 0.1, 0.05}},
	}},
	{21, "cosine to 0.1; linear to 0 is better by; WSD is better by; constant is better by", []judged{
		{Holds, []float64{3, 1, 0.5, -1}},
		{HoldsWhen, []float64{3, 1.5, 0.5, -1}},
		{DoesNotHold, []float64{3, 0.5, 0.5, 0}},
	}},
	{22, "5 %; 10 %; 20 %; 50 %; 20 %, exponential", []judged{
		{Holds, []float64{3.2, 3.1, 3, 3, 3.02}},
		{HoldsWhen, []float64{3.2, 3.1, 3.1, 3, 3.1}},
		{DoesNotHold, []float64{3.2, 3.1, 3, 3, 3.2}},
		{DoesNotHold, []float64{3, 3.2, 3.2, 3.1, 3.2}},
	}},
	{34, "BF16; FP32; behind the point", []judged{
		{Holds, []float64{3.01, 3, 7}},
		{DoesNotHold, []float64{3.02, 3, 7}},
	}},
	{35, "steps in FP16; smallest FP16; lost in FP16; steps in BF16; smallest BF16; lost in BF16", []judged{
		{Holds, []float64{0.001, 1e-40, 0, 0.008, 1e-7, 99}},
		{DoesNotHold, []float64{0.001, 1e-7, 99, 0.008, 1e-40, 0}},
	}},
	{36, "missed in BF16; missed in FP32; missed in FP64", []judged{
		{Holds, []float64{100, 1.1, 0}},
		{DoesNotHold, []float64{100, 1, 0}},
	}},
	{37, "largest FP16; largest BF16; largest FP32; BF16, behind the point; TF32, in all", []judged{
		{Holds, []float64{65504, 3.39e38, 3.4e38, 7, 19}},
		{DoesNotHold, []float64{65504, 3.39e38, 3.4e38, 8, 19}},
		{DoesNotHold, []float64{65504, 3.39e38, 3.4e38, 7, 20}},
		{DoesNotHold, []float64{65504, 3.39e37, 3.4e38, 7, 19}},
	}},
	{40, "optimum at 1e18 FLOPs; optimum at 1e25 FLOPs; cheapest to train and serve; half the tokens at the " +
		"optimum of 1e22 cost", []judged{
		{Holds, []float64{25, 17, 20, 0.1}},
		{HoldsWhen, []float64{25, 17, 90, 0.1}},
		{DoesNotHold, []float64{25, 90, 90, 0.1}},
	}},
	{42, "gpt2; He; He is better by", []judged{
		{Holds, []float64{3, 2.9, 3}},
		{HoldsWhen, []float64{3, 3.01, -0.3}},
		{DoesNotHold, []float64{3, 3.1, -3}},
	}},
	{43, "without; with; branches skipped; better by", []judged{
		{Holds, []float64{3, 2.9, 25, 3}},
		{HoldsWhen, []float64{3, 3.01, 25, -0.3}},
		{DoesNotHold, []float64{3, 3.1, 25, -3}},
		{DoesNotHold, []float64{3, 2.9, 5, 3}},
	}},
	{51, "gpt3-175b, parameters; gpt3-175b, tokens; gpt3-175b, ε; llama2-7b, parameters; llama2-7b, tokens; " +
		"llama2-7b, ε", []judged{
		{Holds, []float64{174.6, 300, 1e-8, 6.74, 2000, 1e-5}},
		{DoesNotHold, []float64{174.6, 300, 1e-8, 6.74, 1000, 1e-5}},
		{DoesNotHold, []float64{174.6, 300, 1e-8, 6.74, 2000, 1e-8}},
	}},
	{52, "first batch; last batch; undisclosed values", []judged{
		{Holds, []float64{1.5, 1.5, 0}},
		{HoldsWhen, []float64{1.5, 3, 6}},
		{DoesNotHold, []float64{3, 3, 6}},
	}},
	{53, "parameters; undisclosed values", []judged{{NotMeasurable, []float64{7.2, 12}}}},
	{60, "rate of the first update, counted from 0; rate of the first update, counted from 1; 1e-6 changes the " +
		"coefficient by", []judged{
		{Holds, []float64{0, 0, 1e-7}},
		{HoldsWhen, []float64{0, 0.01, 1e-7}},
		{DoesNotHold, []float64{0.01, 0.02, 1e-7}},
	}},
	{23, "random order; short texts first are better by; repetitive texts first are better by", []judged{
		{Holds, []float64{3, 5, 0}},
		{HoldsWhen, []float64{3, -2, 1}},
		{DoesNotHold, []float64{3, 0.9, 0.9}},
	}},
	{24, "one document a row of 512; one document a row of 2048; one document a row of 8192; best fit, at least; " +
		"documents that joining cuts, at most", []judged{
		{Holds, []float64{70, 60, 50, 99, 30}},
		{HoldsWhen, []float64{80, 60, 40, 99, 30}},
		{DoesNotHold, []float64{70, 60, 50, 98, 30}},
	}},
	{25, "masked; not masked; pairs across documents in 256 tokens; pairs across documents in 8192 tokens", []judged{
		{Holds, []float64{3, 3.03, 2, 20}},
		{HoldsWhen, []float64{3, 3.03, 2, 60}},
		{DoesNotHold, []float64{3, 3.04, 2, 60}},
	}},
	{32, "ALiBi at once; ALiBi at four times; rope at once; rope at four times", []judged{
		{Holds, []float64{3, 2.94, 3, 4}},
		{HoldsWhen, []float64{3, 3.03, 3, 4}},
		{DoesNotHold, []float64{3, 3.1, 3, 4}},
		{DoesNotHold, []float64{3.1, 3, 3, 4}},
	}},
	{38, "bytes and merges", []judged{{NotMeasurable, []float64{100256}}}},
	{39, "fertility of 512 tokens; length with 512 tokens; fertility of 8,192 tokens; length with 8,192 tokens",
		[]judged{
			{Holds, []float64{4, 1000, 2, 2000}},
			{DoesNotHold, []float64{4, 2000, 2, 1000}},
		}},
	{41, "growth with muP; growth without", []judged{
		{HoldsWhen, []float64{0.15, 0.16}},
		{DoesNotHold, []float64{0.16, 0.5}},
		{DoesNotHold, []float64{0.1, 0.1}},
	}},
	{45, "best of six rates; the test's loss falls fastest at; the test's loss is lowest at", []judged{
		{Holds, []float64{4e-3, 8e-3, 1e-2}},
		{HoldsWhen, []float64{4e-3, 9e-3, 1e-2}},
		{DoesNotHold, []float64{4e-3, 1e-3, 2e-3}},
	}},
	{56, "before, 300 examples; after, 300 examples; from all answers; from the examples, as many steps; " +
		"before, 30 examples; after, 30 examples", []judged{
		{Holds, []float64{16, 95, 16, 20, 2, 12}},
		{HoldsWhen, []float64{16, 95, 16, 20, 2, 9}},
		{HoldsWhen, []float64{16, 95, 31, 96, 6, 11}},
		{DoesNotHold, []float64{16, 31, 16, 20, 2, 12}},
		{DoesNotHold, []float64{16, 95, 32, 20, 2, 12}},
	}},
	{57, "words left, replaced; words left, a tenth real; words left, kept", []judged{
		{Holds, []float64{30, 50, 60}},
		{HoldsWhen, []float64{89, 95, 90}},
		{DoesNotHold, []float64{90, 95, 100}},
	}},
	{58, "secrets written; secrets written, deduplicated; new documents; new documents, deduplicated", []judged{
		{Holds, []float64{20, 0, 2, 1.79}},
		{HoldsWhen, []float64{20, 4, 2, 2.01}},
		{DoesNotHold, []float64{20, 4.1, 2, 2}},
		{DoesNotHold, []float64{20, 0, 2, 2.1}},
		{DoesNotHold, []float64{0, 0, 2, 2}},
	}},
}

// Every rule tells figures on its two sides apart, and quotes figures in a sentence.
func TestRulesJudgeByFigures(t *testing.T) {
	rulings := map[int]map[Ruling]bool{}
	for _, r := range rules {
		rulings[r.claim] = map[Ruling]bool{}
		for _, x := range r.cases {
			rulings[r.claim][x.want] = true
			v, err := find(t, r.claim).Verdict(x.figures(t, r.names))
			if err != nil {
				t.Error(err)
			}
			if v.Ruling != x.want || (v.Condition != "") != (x.want == HoldsWhen) {
				t.Errorf("claim %d: %v give %s, want %s", r.claim, x.values, v, x.want)
			}
			if !strings.ContainsAny(v.Why, "0123456789") || !strings.HasSuffix(v.Why, ".") ||
				strings.Contains(v.Why, "NaN") || strings.Contains(v.Why, "%!") {
				t.Errorf("claim %d: no sentence with figures: %s", r.claim, v.Why)
			}
		}
	}
	for _, c := range All() {
		if !rulings[c.Number][NotMeasurable] && len(rulings[c.Number]) < 2 {
			t.Errorf("claim %d has no figures on both sides of its rule", c.Number)
		}
	}
}

func (x judged) figures(t *testing.T, names string) (list []Figure) {
	t.Helper()
	all := strings.Split(names, "; ")
	if len(all) != len(x.values) {
		t.Fatalf("%q: %d values", names, len(x.values))
	}
	for i, name := range all {
		list = append(list, Figure{name, x.values[i], ""})
	}
	return list
}
