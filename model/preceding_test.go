package model

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"

	"anneal/nn"
	"anneal/precision"
)

// preceding is the family anneal with all that embeddings can have of the token before.
var preceding = func() Config {
	c := recipe
	c.Bigram, c.Smear = 40, true
	return c
}()

// stirred moves the weights of smear and bigrams, which start as if they were not there.
func stirred(x *bench) *bench {
	stir(x.m)
	return x
}

func stir(m *Decoder) {
	for _, p := range m.Params() {
		if p.Name != "smear" && p.Name != "bigram" {
			continue
		}
		for i := range p.Value.Len() {
			p.Value.SetFloat64(i, p.Value.Float64(i)+0.3*math.Sin(1.7*float64(i)+1))
		}
	}
}

func TestGradientsOfWhatPrecedesMatchFiniteDifferences(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"both":       func(*Config) {},
		"bigram":     func(c *Config) { c.Smear = false },
		"smear":      func(c *Config) { c.Bigram = 0 },
		"one row":    func(c *Config) { c.Bigram = 1 },
		"narrow":     func(c *Config) { c.Dim, c.HeadDim = 8, 2 },
		"untied":     func(c *Config) { c.TieEmbeddings = false },
		"mup":        func(c *Config) { setMuP(c, 4, 2, 12, 0, 1.5, 3) },
		"llama else": func(c *Config) { c.Activation, c.ValueEmbeddings, c.X0Skip = "swiglu", "none", false },
	} {
		t.Run(name, func(t *testing.T) {
			c := preceding
			change(&c)
			x := stirred(newBench(t, c, "fp64", 2, 8))
			x.gradients()
			checkGradients(t, x)
			embed := x.m.embed // it is read three times: of a token, by its gate, and by the token after it
			for i := range embed.Value.F64() {
				checkGradient(t, x, embed, i)
			}
		})
	}
}

// The stream begins with what the formulas in smear.go and bigram.go say, with nothing of another document or row.
func TestEmbeddingsHaveOfTheTokenBeforeWhatTheFormulasSay(t *testing.T) {
	x := stirred(newBench(t, preceding, "fp64", 2, 8))
	embed, smear, pairs := x.m.embed.Value.F64(), x.m.smear.Value.F64(), x.m.bigram.table.Value.F64()
	x.tape.Reset(false)
	out := x.m.Embed(x.tape, &x.b.Tokens, &x.b.Seq)
	ids, d := x.b.Tokens.I32(), preceding.Dim
	for i, id := range ids {
		logit := 0.0
		for j, w := range smear[2:] {
			logit += w * embed[int(id)*d+j]
		}
		for j := range d {
			want := smear[0] * embed[int(id)*d+j]
			if i%4 != 0 { // documents have four tokens
				before := ids[i-1]
				want += smear[1]/(1+math.Exp(-logit))*embed[int(before)*d+j] +
					pairs[int(bigramRow(before, id, preceding.Bigram))*d+j]
			}
			if got := out.Value.F64()[i*d+j]; math.Abs(got-want) > 1e-14 {
				t.Fatalf("token %d, element %d: %v, want %v", i, j, got, want)
			}
		}
	}
}

// Another last token of a document changes no loss of the next one.
func TestWhatPrecedesEndsWithTheDocument(t *testing.T) {
	x := stirred(newBench(t, preceding, "fp32", 2, 8))
	x.loss()
	was := bytes.Clone(x.b.Losses.Raw())
	x.b.Tokens.I32()[3] = (x.b.Tokens.I32()[3] + 1) % int32(preceding.Vocab)
	x.loss()
	if now := x.b.Losses.Raw(); bytes.Equal(now[:16], was[:16]) || !bytes.Equal(now[16:], was[16:]) {
		t.Error("losses of another document changed, or none of its own")
	}
}

// A model starts as the one without.
func TestWhatPrecedesStartsAsNothing(t *testing.T) {
	for _, policy := range precision.Names() {
		with, without := newBench(t, preceding, policy, 2, 8), newBench(t, recipe, policy, 2, 8)
		weights := map[string]*nn.Param{}
		for _, p := range with.m.Params() {
			weights[p.Name] = p
		}
		for _, p := range without.m.Params() {
			copy(p.Value.Raw(), weights[p.Name].Value.Raw())
		}
		with.loss()
		without.loss()
		if !bytes.Equal(with.b.Losses.Raw(), without.b.Losses.Raw()) {
			t.Errorf("%s: other losses", policy)
		}
	}
}

func TestFootprintOfWhatPrecedesIsExactAndStepsAllocateNothing(t *testing.T) {
	checkFootprint(t, preceding)
}

func TestWhatPrecedesRecomputesTheSameBits(t *testing.T) {
	for _, policy := range precision.Names() {
		c := preceding
		c.Layers = 5
		checkRecomputation(t, c, policy)
		checkLossesWithoutTape(t, preceding, policy)
	}
}

// Rows of pairs go by order, and are spread evenly: χ² of the counts in B rows is about B, with a standard deviation of
// √(2·B).
func TestPairsSpreadOverRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, vocab := rapid.IntRange(1, 5000).Draw(t, "rows"), rapid.IntRange(200, 400).Draw(t, "vocab")
		first := int32(rapid.IntRange(0, 100000).Draw(t, "first"))
		counts, swapped, n := make([]int, rows), 0, float64(vocab*vocab)
		for a := range int32(vocab) {
			for b := range int32(vocab) {
				row := bigramRow(first+a, first+b, rows)
				counts[row]++
				if row == bigramRow(first+b, first+a, rows) {
					swapped++
				}
			}
		}
		distance, mean := 0.0, n/float64(rows)
		for _, c := range counts {
			distance += (float64(c) - mean) * (float64(c) - mean) / mean
		}
		if limit := float64(rows) + 8*math.Sqrt(2*float64(rows)); distance > limit {
			t.Fatalf("χ² of %v pairs in %d rows is %.0f, above %.0f", n, rows, distance, limit)
		}
		if limit := float64(vocab) + 2*n/float64(rows) + 100; float64(swapped) > limit {
			t.Fatalf("%d of %v pairs have the row of the pair in reverse", swapped, n)
		}
	})
}
