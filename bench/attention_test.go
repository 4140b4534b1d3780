package bench

import (
	"math"
	"strings"
	"testing"

	"anneal/device"
	"anneal/device/cpu"
	"anneal/internal/isa"
	"anneal/tensor"
)

func generic() device.Device { return cpu.NewTier(isa.Generic, 1) }

// What is reported of a case follows from its shape: pairs, operations, tensors; relations to full attention are of
// heads and of the peak beside each.
func TestAttentionBenchCountsWhatItRuns(t *testing.T) {
	const length, heads, e = 96, 2, 16
	seen := 0
	r, err := Attention(generic, AttentionOptions{
		Patterns: []string{"full", "window:32", "linear"}, Lengths: []int{2 * length, length, length},
		Heads: heads, HeadDim: e, DType: tensor.BF16, Seconds: 1e-3,
	}, func(AttentionCase) { seen++ })
	if err != nil {
		t.Fatal(err)
	}
	if seen != 6 || len(r.Cases) != 6 || len(r.Growth) != 3 || len(r.Chart().Series) != 3 {
		t.Fatalf("%d cases seen, %d reported, %d growths", seen, len(r.Cases), len(r.Growth))
	}
	for i, c := range r.Cases {
		n := length * (1 + i/3)
		pairs := []float64{float64(n*(n+1)) / 2, float64(32*n - 32*31/2), 0}[i%3] // of a head
		if want := 14 * e * pairs * float64(c.Heads); c.FLOPs != want || c.Length != n {
			t.Errorf("%s on %d tokens: %g operations, want %g on %d", c.Pattern, c.Length, c.FLOPs, want, n)
		}
		if want := n * c.Heads * (2*(8*e) + 4); c.TensorBytes < want || c.TensorBytes > want+5*tensor.Align ||
			c.PeakBytes != c.TensorBytes+c.ScratchBytes || c.ScratchBytes == 0 {
			t.Errorf("%s on %d tokens: %d bytes of tensors, %d of scratch, %d in all; want %d of tensors",
				c.Pattern, n, c.TensorBytes, c.ScratchBytes, c.PeakBytes, want)
		}
		if c.Seconds != c.ForwardSeconds+c.BackwardSeconds ||
			!(c.ForwardSeconds > 0 && c.BackwardSeconds > 0) || c.Runs < 1 {
			t.Errorf("%s on %d tokens: %+v", c.Pattern, n, c)
		}
		full := r.Cases[i/3*3]
		if want := full.FractionOfPeak / c.FractionOfPeak; i%3 == 1 && math.Abs(c.OverDense-want) > 1e-9*want {
			t.Errorf("%s on %d tokens: %v over dense, want %v", c.Pattern, n, c.OverDense, want)
		}
	}
}

func TestExponentOfKnownGrowth(t *testing.T) {
	var points []AttentionCase
	for _, n := range []int{1024, 2048, 8192} {
		points = append(points, AttentionCase{
			Length: n, Heads: 1 + n/4096, Seconds: 3e-9 * math.Pow(float64(n), 1.7) * float64(1+n/4096),
		})
	}
	if got := exponent(points); math.Abs(got-1.7) > 1e-9 {
		t.Errorf("exponent %v, want 1.7", got)
	}
}

func TestAttentionBenchNamesPatternsThatDoNotFit(t *testing.T) {
	_, err := Attention(generic, AttentionOptions{
		Patterns: []string{"window:0"}, Lengths: []int{64}, Heads: 1, HeadDim: 8, DType: tensor.BF16,
	}, func(AttentionCase) {})
	if err == nil || !strings.Contains(err.Error(), "window") {
		t.Errorf("a window of zero: %v", err)
	}
}
