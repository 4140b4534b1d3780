package main

import (
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
