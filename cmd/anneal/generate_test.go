package main

import (
	"strings"
	"testing"

	"anneal/model"
	"anneal/tensor"
)

// --top-p 0 leaves the most likely token alone, as top_p of the server does; 1 leaves all.
func TestTopPOfZeroLeavesTheMostLikelyToken(t *testing.T) {
	logits := tensor.Of([]float32{0, 0.2, 0.1}, 1, 3)
	for topP, want := range map[float64]int{0: 1, 1: 3} {
		drawn := map[int32]bool{}
		for seed := range uint64(50) {
			s, err := samplingFlags{Temperature: 2, TopP: topP, Seed: seed, RepetitionPenalty: 1}.sampling()
			if err != nil {
				t.Fatal(err)
			}
			drawn[new(model.Sampler).Next(logits, []int32{0}, s)] = true
		}
		if len(drawn) != want || !drawn[1] {
			t.Errorf("--top-p %v: the tokens %v are drawn, want %d", topP, drawn, want)
		}
	}
}

// Penalties that could make probabilities that are no numbers are refused, whoever asks for them.
func TestPenaltiesHaveBounds(t *testing.T) {
	for flag, want := range map[string]string{
		"--frequency-penalty=-1e308":  "--frequency-penalty -1e+308 is not between -100 and 100",
		"--presence-penalty=100.5":    "--presence-penalty 100.5 is not between -100 and 100",
		"--presence-penalty=nan":      "--presence-penalty NaN is not between -100 and 100",
		"--repetition-penalty=5e-324": "--repetition-penalty 5e-324 is not between 0.01 and 100",
		"--repetition-penalty=0":      "--repetition-penalty 0 is not between 0.01 and 100",
		"--repetition-penalty=101":    "--repetition-penalty 101 is not between 0.01 and 100",
	} {
		code, _, errs := anneal("generate", t.TempDir(), "--prompt", "a", flag)
		if code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit %d, without %q:\n%s", flag, code, want, errs)
		}
	}
	for _, f := range []samplingFlags{
		{RepetitionPenalty: 0.01, FrequencyPenalty: -100, PresencePenalty: 100},
		{RepetitionPenalty: 100, FrequencyPenalty: 100, PresencePenalty: -100},
	} {
		if _, err := f.sampling(); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
}
