//go:build cuda && linux

package cuda

import (
	"math"
	"testing"
)

// Computed peaks of cards equal those of the vendor's data sheets, in TFLOP/s, within 3 %.
func TestPeaksAreThoseOfTheDataSheets(t *testing.T) {
	for _, c := range []struct {
		card         Card
		half, single float64
	}{
		{Card{Name: "A100 SXM", Capability: 80, Multiprocessors: 108, MHz: 1410}, 312, 19.5},
		{Card{Name: "H100 SXM", Capability: 90, Multiprocessors: 132, MHz: 1980}, 989, 61.9}, // FP32 as well
		{Card{Name: "RTX 3090", Capability: 86, Multiprocessors: 82, MHz: 1695}, 71, 35.6},
		{Card{Name: "a card to come", Capability: 150, Multiprocessors: 200, MHz: 2000}, 0, 0},
	} {
		half, single := c.card.Peak()
		if math.Abs(half/1e12-c.half) > 0.03*c.half || math.Abs(single/1e12-c.single) > 0.03*c.single {
			t.Errorf("%s: %.1f and %.1f TFLOP/s, want %.1f and %.1f",
				c.card.Name, half/1e12, single/1e12, c.half, c.single)
		}
	}
}
