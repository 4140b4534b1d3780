package bench

import (
	"context"
	"math"
	"testing"
)

// The rates follow from the times, and the bytes from the shape: all matrices and the head, in BF16 two bytes each.
func TestBenchGenerateCountsWeights(t *testing.T) {
	o := Options{Shape: "demo", Precision: "bf16", Threads: 2}
	r, err := Generate(context.Background(), o, []int{1, 5})
	if err != nil {
		t.Fatal(err)
	}
	m := Shapes["demo"].Model
	matrices := m.Layers*(4*m.Dim*m.Dim+3*m.Dim*m.FFN) + m.Vocab*m.Dim
	if want := int64(2*matrices + 4*(2*m.Layers+1)*m.Dim); r.WeightBytes != want {
		t.Errorf("%d bytes of weights, want %d", r.WeightBytes, want)
	}
	if len(r.Cases) != 2 || r.BandwidthGBs <= 0 || r.PromptTokensPerSecond <= 0 || r.ForwardTokensPerSecond <= 0 {
		t.Fatalf("%+v", r)
	}
	for i, n := range []int{1, 5} {
		c := r.Cases[i]
		if c.Sequences != n || math.Abs(c.TokensPerSecond*c.PassMs-1e3*float64(n)) > 1e-6 {
			t.Errorf("%+v is no case of %d sequences", c, n)
		}
		gbs := float64(r.WeightBytes) * c.TokensPerSecond / float64(n) / 1e9
		if math.Abs(c.GBs-gbs) > 1e-9*gbs || math.Abs(c.FractionOfBandwidth-gbs/r.BandwidthGBs) > 1e-9 {
			t.Errorf("%+v, want %v GB/s", c, gbs)
		}
	}
}

// A shape with a shorter context than the sequences that are continued gets a longer one.
func TestBenchGenerateTakesEveryShape(t *testing.T) {
	r, err := Generate(context.Background(), Options{Shape: "micro", Precision: "fp32", Threads: 1}, []int{2})
	if err != nil || len(r.Cases) != 1 || r.Cases[0].TokensPerSecond <= 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A run that is told to stop does.
func TestBenchGenerateStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Generate(ctx, Options{Shape: "micro", Precision: "fp32", Threads: 1}, []int{1}); err == nil {
		t.Error("it went on")
	}
}
