package model

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"anneal/tensor"
)

// The order is that of a sort by comparisons, whatever the logits: equal ones, both zeros, infinities.
func TestCandidatesAreInTheOrderOfASort(t *testing.T) {
	var x Sampler // of all cases: memory of earlier calls must not matter
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(t, "n")
		rng, kinds := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 60).Draw(t, "kinds")
		narrow := rapid.Bool().Draw(t, "narrow")
		logits := make([]float64, n)
		for i := range logits {
			rng = rng*6364136223846793005 + 1442695040888963407
			switch k := int(rng>>33) % kinds; k {
			case 0:
				logits[i] = math.Copysign(0, float64(i%2)-0.5)
			case 1:
				logits[i] = math.Inf(-1)
			default:
				logits[i] = math.Sin(float64(k)) * math.Exp(float64(k%7))
			}
			if narrow {
				logits[i] = float64(float32(logits[i]))
			}
		}
		topK := rapid.IntRange(0, n+1).Draw(t, "top-k")
		want := make([]candidate, n)
		for i, z := range logits {
			want[i] = candidate{int32(i), z}
		}
		slices.SortFunc(want, compare)
		if topK > 0 && topK < n {
			want = want[:topK]
		}
		all := tensor.Of(logits)
		x.load(all)
		if got := x.descending(topK); !slices.Equal(got, want) {
			t.Fatalf("top %d of %v:\n%v, want\n%v", topK, logits, got, want)
		}
	})
}

// A heap or a radix sort must not hang or panic on NaN, which has no place in an order.
func TestNaNLogitsAreSampled(t *testing.T) {
	logits := tensor.Of([]float64{math.NaN(), 1, math.NaN(), 3, 2})
	for topK := range 6 {
		for _, temperature := range []float64{0, 1} {
			id := new(Sampler).Next(logits, []int32{0}, Sampling{Temperature: temperature, TopK: topK})
			if id < 0 || id > 4 {
				t.Errorf("token %d", id)
			}
		}
	}
}

func BenchmarkSample(b *testing.B) {
	logits := make([]float32, 16384)
	for i := range logits {
		logits[i] = float32(5 * math.Sin(float64(i)*float64(i)))
	}
	z := tensor.Of(logits)
	for _, c := range []struct {
		name string
		s    Sampling
	}{
		{"greedy", Sampling{}}, {"top-k", Sampling{Temperature: 1, TopK: 40}},
		{"top-p", Sampling{Temperature: 1, TopP: 0.95}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var x Sampler
			for b.Loop() {
				x.Next(z, []int32{1}, c.s)
			}
		})
	}
}
