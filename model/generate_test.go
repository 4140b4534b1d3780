package model

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"anneal/precision"

	"pgregory.net/rapid"
)

// newGenerator returns a generator for a random model of the small shape.
func newGenerator(t testing.TB, policy string) *Generator {
	t.Helper()
	x := newBench(t, small, policy, 1, small.Context)
	p, err := precision.Lookup(policy)
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewGenerator(x.m, p, x.dev)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

// continued returns the n tokens that sampling adds to ids.
func continued(g *Generator, ids []int32, n int, s Sampling) []int32 {
	ids = slices.Clone(ids)
	for range n {
		ids = append(ids, g.Next(ids, s))
	}
	return ids[len(ids)-n:]
}

func TestTemperatureZeroTakesTheMostLikely(t *testing.T) {
	for _, policy := range []string{"bf16", "fp32"} {
		g := newGenerator(t, policy)
		for first := range int32(10) {
			ids := []int32{first, 3}
			logits, best := g.Logits(ids), 0
			for i := range logits.Len() {
				if logits.Float64(i) > logits.Float64(best) {
					best = i
				}
			}
			for _, s := range []Sampling{
				{}, {Seed: 9}, {Temperature: 1, TopK: 1}, {Temperature: 1e-9, Seed: 4}, {Temperature: 1, TopP: 1e-9},
			} {
				if got := g.Next(ids, s); got != int32(best) {
					t.Errorf("%s: %+v after %v draws %d, the most likely is %d", policy, s, ids, got, best)
				}
			}
		}
	}
}

func TestSamplesAreAFunctionOfTheSeed(t *testing.T) {
	g := newGenerator(t, "fp32")
	seen := map[string]bool{}
	for seed := range uint64(5) {
		s := Sampling{Temperature: 1.5, Seed: seed}
		a, b := continued(g, []int32{1}, 12, s), continued(g, []int32{1}, 12, s)
		if !slices.Equal(a, b) {
			t.Errorf("seed %d draws %v, then %v", seed, a, b)
		}
		text := make([]byte, len(a))
		for i, id := range a {
			text[i] = byte(id)
		}
		seen[string(text)] = true
	}
	if len(seen) < 4 {
		t.Errorf("5 seeds give %d different samples", len(seen))
	}
}

// Beyond its context the model sees the end of a sequence only, at the positions of a fresh one.
func TestGenerationSlidesBeyondTheContext(t *testing.T) {
	g := newGenerator(t, "fp32")
	ids := continued(g, []int32{1, 2}, 3*small.Context, Sampling{Temperature: 1, Seed: 1})
	for i, id := range ids {
		if id < 0 || int(id) >= small.Vocab {
			t.Fatalf("token %d is %d, the vocabulary has %d", i, id, small.Vocab)
		}
	}
	long := bytes.Clone(g.Logits(ids).Raw())
	end := InSight(ids, small.Context)
	if window := g.Logits(end); !bytes.Equal(window.Raw(), long) {
		t.Error("the logits after a long sequence are not those after its last tokens")
	}
	if shorter := g.Logits(end[1:]); bytes.Equal(shorter.Raw(), long) {
		t.Error("the first token in sight has no influence")
	}
}

func drawLogits(t *rapid.T) []candidate {
	logits := rapid.SliceOfN(rapid.Float64Range(-8, 8), 1, 50).Draw(t, "logits")
	c := make([]candidate, len(logits))
	for i, z := range logits {
		c[i] = candidate{int32(i), z}
	}
	return c
}

// Each probability against the softmax written down directly; the cut against its definition.
func TestNucleusKeepsTheFewestMostLikely(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawLogits(t)
		s := Sampling{
			Temperature: rapid.Float64Range(0.1, 3).Draw(t, "temperature"),
			TopK:        rapid.IntRange(0, 60).Draw(t, "top k"),
			TopP:        rapid.Float64Range(0, 1).Draw(t, "top p"),
		}
		order := func() []candidate { return (&Sampler{probs: slices.Clone(all)}).descending(s.TopK) }
		kept := nucleus(order(), s)
		s.MinP = rapid.Float64Range(0, 1).Draw(t, "min p")
		few := nucleus(order(), s)
		for i, c := range kept {
			if likely := c.p >= s.MinP*kept[0].p; likely != (i < len(few)) || likely && few[i] != c {
				t.Fatalf("min-p %v keeps %d of %d: %v", s.MinP, len(few), len(kept), kept)
			}
		}

		byRank := slices.Clone(all)
		slices.SortFunc(byRank, func(a, b candidate) int {
			if a.p != b.p {
				return int(math.Copysign(1, b.p-a.p))
			}
			return int(a.id - b.id)
		})
		if s.TopK > 0 {
			byRank = byRank[:min(s.TopK, len(byRank))]
		}
		total := 0.0
		for _, c := range byRank {
			total += math.Exp(c.p / s.Temperature)
		}
		// fewest returns how many together have probability p; rounding may tip the balance either way.
		fewest := func(p float64) int {
			n, sum := 0, 0.0
			for n < len(byRank) && (n == 0 || sum < p) {
				sum += math.Exp(byRank[n].p/s.Temperature) / total
				n++
			}
			return n
		}
		low, high := fewest(s.TopP-1e-12), fewest(s.TopP+1e-12)
		if s.TopP == 0 || s.TopP == 1 {
			low, high = len(byRank), len(byRank)
		}
		if len(kept) < low || len(kept) > high {
			t.Fatalf("%d candidates kept, want %d", len(kept), low)
		}
		for i, c := range kept {
			p := math.Exp(byRank[i].p/s.Temperature) / total
			if c.id != byRank[i].id || math.Abs(c.p-p) > 1e-12 {
				t.Fatalf("rank %d is %d with %v, want %d with %v", i, c.id, c.p, byRank[i].id, p)
			}
		}
	})
}

// Penalties by their formulas. A token of the prompt counts as a repetition, but was not made.
func TestPenaltiesLowerWhatIsThere(t *testing.T) {
	ids := []int32{0, 1, 1, 2, 3, 3, 3}
	for _, x := range []struct {
		s    Sampling
		want []float64
	}{
		{Sampling{}, []float64{2, -2, 4, -4, 6}},
		{Sampling{Repetition: 1}, []float64{2, -2, 4, -4, 6}},
		{Sampling{Repetition: 2, Prompt: 6}, []float64{1, -4, 2, -8, 6}},
		{Sampling{Frequency: 0.5, Prompt: 2}, []float64{2, -2.5, 3.5, -5.5, 6}},
		{Sampling{Presence: 0.25}, []float64{1.75, -2.25, 3.75, -4.25, 6}},
		{Sampling{Repetition: 2, Frequency: 0.5, Presence: 0.25, Prompt: 4}, []float64{1, -4, 2, -9.75, 6}},
		{Sampling{Frequency: -1, Prompt: 99}, []float64{2, -2, 4, -4, 6}},
	} {
		var c []candidate
		for i, z := range []float64{2, -2, 4, -4, 6} {
			c = append(c, candidate{int32(i), z})
		}
		x.s.penalise(c, ids)
		for i := range c {
			if c[i].p != x.want[i] {
				t.Errorf("%+v: logits %v, want %v", x.s, c, x.want)
				break
			}
		}
	}
}

// A greedy text that repeats itself no longer does with a penalty, and settings out of range are refused.
func TestPenaltiesEndRepetition(t *testing.T) {
	g := newGenerator(t, "fp32")
	plain := continued(g, []int32{1}, 40, Sampling{})
	other := continued(g, []int32{1}, 40, Sampling{Presence: 1e6, Prompt: 1})
	different := func(ids []int32) int { return len(slices.Compact(slices.Sorted(slices.Values(ids)))) }
	if a, b, want := different(plain), different(other), min(len(other), small.Vocab); b != want || a >= b {
		t.Errorf("%d different tokens without a penalty, %d with one, want %d", a, b, want)
	}
	for _, s := range []Sampling{
		{MinP: -0.1}, {MinP: 1.1}, {MinP: math.NaN()}, {Repetition: -1}, {Repetition: math.Inf(1)},
		{Repetition: math.NaN()}, {Frequency: math.NaN()}, {Presence: math.Inf(-1)},
	} {
		if s.Validate() == nil {
			t.Errorf("%+v is valid", s)
		}
	}
}

// Drawing at a fine grid of u gives each candidate its share of the total.
func TestDrawFollowsTheProbabilities(t *testing.T) {
	c := []candidate{{7, 0.5}, {2, 0.2}, {9, 0}, {4, 0.1}} // cut to a total of 0.8
	const n = 8000
	counts := map[int32]int{}
	for i := range n {
		counts[draw(c, (float64(i)+0.5)/n)]++
	}
	for _, x := range c {
		if want := int(math.Round(x.p / 0.8 * n)); counts[x.id] != want {
			t.Errorf("candidate %d of probability %v is drawn %d of %d times, want %d",
				x.id, x.p, counts[x.id], n, want)
		}
	}
}

func TestSamplingThatCannotBeIsRefused(t *testing.T) {
	for _, s := range []Sampling{
		{Temperature: -1}, {Temperature: math.NaN()}, {Temperature: math.Inf(1)}, {TopK: -1}, {TopP: -0.1}, {TopP: 1.5},
		{TopP: math.NaN()},
	} {
		if s.Validate() == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
	for _, s := range []Sampling{{}, {Temperature: 0.7, TopK: 40, TopP: 0.95}, {TopP: 1}} {
		if err := s.Validate(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
