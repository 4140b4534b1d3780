package model

import (
	"math"
	"testing"

	"anneal/precision"
)

// outline is a Llama without memory.
func outline(layers, dim, heads, kv, ffn, context, vocab int, tied bool) *Decoder {
	return Outline(Config{
		Layers: layers, Dim: dim, Heads: heads, KVHeads: kv, HeadDim: dim / heads, FFN: ffn, Context: context,
		Vocab: vocab, TieEmbeddings: tied,
	}, precision.Policy{})
}

// The published counts of models that everyone can look up, and the benchmark shapes added up by hand.
func TestParametersOfKnownModels(t *testing.T) {
	for _, c := range []struct {
		name  string
		model *Decoder
		want  int64
	}{
		{"Llama 2 7B", outline(32, 4096, 32, 32, 11008, 4096, 32000, false), 6_738_415_616},
		{"Llama 2 70B", outline(80, 8192, 64, 8, 28672, 4096, 32000, false), 68_976_648_192},
		{"Mistral 7B", outline(32, 4096, 32, 8, 14336, 8192, 32000, false), 7_241_732_096},
		{"tiny", outline(6, 384, 6, 6, 1024, 256, 4096, true), 12_194_688},
		{"llama-98m", outline(12, 768, 12, 12, 2048, 512, 16384, true), 97_536_768},
	} {
		if got := c.model.Count(); got != c.want {
			t.Errorf("%s: %d parameters, want %d", c.name, got, c.want)
		}
	}
}

// Counting operation by operation gives what the closed form gives.
func TestFLOPsPerTokenCountsEachProduct(t *testing.T) {
	for _, m := range []*Decoder{
		outline(6, 384, 6, 6, 1024, 256, 4096, true), outline(12, 768, 12, 12, 2048, 512, 16384, true),
		outline(3, 64, 4, 2, 192, 32, 100, false),
	} {
		c := m.Config
		d, e := float64(c.Dim), float64(c.HeadDim)
		h, k := float64(c.Heads), float64(c.KVHeads)
		block := 2*d*(h+2*k)*e + 2*h*e*d + 2*d*2*float64(c.FFN) + 2*float64(c.FFN)*d
		attention := 2 * 2 * h * e * float64(c.Context) / 2 // q·k and p·v over half of the keys
		forward := float64(c.Layers)*(block+attention) + 2*d*float64(c.Vocab)
		if got := m.FLOPsPerToken(c.Context); math.Abs(got-3*forward) > 1e-9*got {
			t.Errorf("%+v: %g FLOPs per token, product by product %g", c, got, 3*forward)
		}
	}
}

// Of attention only what patterns look at counts, layer by layer, and in shorter sequences what is left of it.
func TestFLOPsPerTokenGoByThePattern(t *testing.T) {
	c := outline(4, 64, 4, 2, 192, 256, 100, false).Config
	full := Outline(c, precision.Policy{})
	c.Attention = seen("window:16,window:16,full")
	m := Outline(c, precision.Policy{})
	for _, n := range []int{256, 64, 8} {
		w := min(16, n)
		pairs := float64(n*w - w*(w-1)/2)
		windows := 3.0 // layers 0, 1 and 3
		want := full.FLOPsPerToken(n) - 6*windows*float64(c.Heads*c.HeadDim)*(float64(n)-2*pairs/float64(n+1))
		if got := m.FLOPsPerToken(n); math.Abs(got-want) > 1e-9*want {
			t.Errorf("%s, sequences of %d: %g FLOPs per token, by its pairs %g", c.Attention, n, got, want)
		}
	}
}

// Without a sequence only the products with weights count, whatever the pattern.
func TestFLOPsPerTokenWithoutASequenceAreThoseOfProducts(t *testing.T) {
	c := outline(4, 64, 4, 2, 192, 256, 100, false).Config
	want := Outline(c, precision.Policy{}).FLOPsPerToken(0)
	c.Attention, c.LongformerGlobalProjections = seen("longformer:3:3,window:16,full"), true
	if got := Outline(c, precision.Policy{}).FLOPsPerToken(0); !(got > want && got < 1.01*want) {
		t.Errorf("%s: %g FLOPs, want little more than %g, for the global tokens", c.Attention, got, want)
	}
}

// A batch counts its products and the pairs of a query and a key in one document, whatever the layers look at.
func TestBatchFLOPsCountPairsInsideDocuments(t *testing.T) {
	c := outline(5, 64, 4, 2, 192, 256, 100, false).Config
	c.Attention = seen("window:16,linear,full,window:16,full")
	m := Outline(c, precision.Policy{})
	for _, lengths := range [][]int{{256}, {1, 2, 253}, {100, 100, 56}, {16, 16, 32, 64, 128}} {
		b := &Batch{T: 256}
		for range 2 { // rows
			from := 0
			for _, n := range lengths {
				for range n {
					b.Host.Start = append(b.Host.Start, int32(from))
				}
				from += n
			}
		}
		products := func(cols, rows int) float64 { return 2 * float64(cols) * float64(rows) }
		block := products(64, (4+2*2)*16) + products(64, 64) + products(64, 2*192) + products(192, 64)
		want := 2 * 256 * (5*block + products(64, 100)) // forward
		for _, n := range lengths {
			for i := range n {
				window, full, chunk := min(i+1, 16), i+1, i%64+1
				pair := 2 * products(16, 1) * 4 // both products, four heads
				want += 2 * pair * float64(2*window+2*full+chunk)
				if i >= 64 {
					want += 2 * 4 * products(16, 16) // the state is read
				}
				if i/64 < (n-1)/64 {
					want += 2 * 2 * products(16, 16) // and written
				}
			}
		}
		if got := m.BatchFLOPs(b); math.Abs(got-3*want) > 1e-9*got {
			t.Errorf("documents of %v tokens: %g FLOPs, one by one %g", lengths, got, 3*want)
		}
	}
}
