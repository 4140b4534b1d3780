package vec

import (
	"math"
	"slices"
	"testing"

	"anneal/internal/isa"
)

// Every tier computes the factors of the definition, and writes nothing after the last group.
func TestMaskIsTheSameOnEveryTier(t *testing.T) {
	m := Mask[float32]{Counter: [4]uint32{0xfffff000, 7, 8, 9}, Key: [2]uint32{0x12345678, 0xfedcba98}, Scale: 1.25}
	for _, tier := range isa.Tiers() {
		v := Float32(tier)
		for _, n := range []int{0, 128, 256, 1024} {
			for _, m.Keep = range []uint32{0, 1, 30000, 65535, 65536} {
				got, want := make([]float32, n+128), make([]float32, n+128)
				mask(want[:n], &m)
				v.Mask(got[:n], &m)
				if !slices.Equal(got, want) {
					t.Errorf("%v: %d factors with keep %d differ from the definition", tier, n, m.Keep)
				}
			}
		}
	}
}

// The share of kept elements is within five standard deviations of the requested one, over all columns and in each.
func TestMaskKeepsTheShareThatWasAskedFor(t *testing.T) {
	const rows = 20000
	for _, keep := range []uint32{6554, 32768, 58982} {
		p := float64(keep) / 65536
		var columns [maskGroup]int
		total := 0
		dst := make([]float64, maskGroup)
		for r := range uint32(rows) {
			mask(dst, &Mask[float64]{Counter: [4]uint32{0, r, 1, 5}, Key: [2]uint32{3, 0}, Keep: keep, Scale: 1})
			for j, f := range dst {
				columns[j] += int(f)
				total += int(f)
			}
		}
		near := func(what string, got, n int) {
			if dev := math.Sqrt(float64(n) * p * (1 - p)); math.Abs(float64(got)-float64(n)*p) > 5*dev {
				t.Errorf("keep %d of 65536, %s: %d of %d survive, want %.0f ± %.0f",
					keep, what, got, n, float64(n)*p, dev)
			}
		}
		near("all", total, rows*maskGroup)
		for _, n := range columns {
			near("one column", n, rows)
		}
	}
}
