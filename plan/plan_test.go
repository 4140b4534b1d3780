package plan

import (
	"math"
	"testing"
)

func llama(layers, dim, heads, kv, ffn, context, vocab int, tied bool) Shape {
	return Shape{Layers: layers, Dim: dim, Heads: heads, KVHeads: kv, HeadDim: dim / heads, FFN: ffn, Context: context, Vocab: vocab, Tied: tied}
}

var (
	tiny = llama(6, 384, 6, 6, 1024, 256, 4096, true)
	m98  = llama(12, 768, 12, 12, 2048, 512, 16384, true)
)

// The published counts of models that everyone can look up, and the benchmark shapes added up by hand.
func TestParametersOfKnownModels(t *testing.T) {
	for _, c := range []struct {
		name  string
		shape Shape
		want  int64
	}{
		{"Llama 2 7B", llama(32, 4096, 32, 32, 11008, 4096, 32000, false), 6_738_415_616},
		{"Llama 2 70B", llama(80, 8192, 64, 8, 28672, 4096, 32000, false), 68_976_648_192},
		{"Mistral 7B", llama(32, 4096, 32, 8, 14336, 8192, 32000, false), 7_241_732_096},
		{"tiny", tiny, 12_194_688},
		{"llama-98m", m98, 97_536_768},
	} {
		if got := c.shape.Parameters(); got != c.want {
			t.Errorf("%s: %d parameters, want %d", c.name, got, c.want)
		}
	}
}

// Counting operation by operation gives what the closed form gives.
func TestFLOPsPerTokenCountsEachProduct(t *testing.T) {
	for _, s := range []Shape{tiny, m98, llama(3, 64, 4, 2, 192, 32, 100, false)} {
		d, e := float64(s.Dim), float64(s.HeadDim)
		h, k := float64(s.Heads), float64(s.KVHeads)
		block := 2*d*(h+2*k)*e + 2*h*e*d + 2*d*2*float64(s.FFN) + 2*float64(s.FFN)*d
		attention := 2 * 2 * h * e * float64(s.Context) / 2 // q·k and p·v over half of the keys
		forward := float64(s.Layers)*(block+attention) + 2*d*float64(s.Vocab)
		if got := s.FLOPsPerToken(); math.Abs(got-3*forward) > 1e-9*got {
			t.Errorf("%+v: %g FLOPs per token, product by product %g", s, got, 3*forward)
		}
	}
}

// adamW keeps two moments.
func adamW(s Shape) Optimizer { return Optimizer{Name: "adamw", State: 8 * s.Parameters()} }

// The masters, gradients and moments are 16 bytes a parameter, whatever the activations are.
func TestMemoryHoldsSixteenBytesPerParameter(t *testing.T) {
	for _, precision := range []string{"bf16", "fp32"} {
		e, err := Memory(tiny, precision, 16, adamW(tiny))
		if err != nil {
			t.Fatal(err)
		}
		var fixed int64
		for _, i := range e {
			switch i.Name {
			case "parameters", "gradients", "optimizer state":
				fixed += i.Bytes
			}
		}
		if want := 16 * tiny.Parameters(); fixed != want {
			t.Errorf("%s: %d bytes, want %d", precision, fixed, want)
		}
		if !e.Fits(e.Total()) || e.Fits(e.Total()-1) {
			t.Errorf("%s: Fits does not turn at the total %d", precision, e.Total())
		}
	}
}

// Only activations and scratch may grow with the micro-batch, and FP32 keeps at most twice what BF16 keeps.
func TestMemoryGrowsWithTheMicroBatchOnlyWhereItMust(t *testing.T) {
	one, _ := Memory(m98, "bf16", 1, adamW(m98))
	four, _ := Memory(m98, "bf16", 4, adamW(m98))
	single, _ := Memory(m98, "fp32", 4, adamW(m98))
	for i := range one {
		switch one[i].Name {
		case "activations":
			if four[i].Bytes != 4*one[i].Bytes {
				t.Errorf("activations: %d bytes for 4 sequences, %d for one", four[i].Bytes, one[i].Bytes)
			}
			if a, b := single[i].Bytes, four[i].Bytes; a <= b || a > 2*b {
				t.Errorf("activations: fp32 %d bytes, bf16 %d", a, b)
			}
		case "scratch":
			if four[i].Bytes > 4*one[i].Bytes || four[i].Bytes <= one[i].Bytes {
				t.Errorf("scratch: %d bytes for 4 sequences, %d for one", four[i].Bytes, one[i].Bytes)
			}
		default:
			if four[i].Bytes != one[i].Bytes {
				t.Errorf("%s: grew from %d to %d with the micro-batch", one[i].Name, one[i].Bytes, four[i].Bytes)
			}
		}
	}
	if _, err := Memory(tiny, "fp4", 1, adamW(tiny)); err == nil {
		t.Error("an unknown precision was planned for")
	}
}
