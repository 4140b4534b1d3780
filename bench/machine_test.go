package bench

import (
	"math"
	"testing"

	"anneal/device"
)

// Calls that an interruption slows down, and rounds in which the machine is slow, do not change a profile; calls that
// are slower than others now and then do.
func TestSamplesAreOfAnUndisturbedMachine(t *testing.T) {
	c := device.Call{Kernel: "Add"}
	usual := []float64{1, 1, 2, 1, 1, 1, 1, 1, 1, 90}
	var slow []float64
	for _, x := range usual {
		slow = append(slow, 2*x)
	}
	for _, rounds := range [][][]float64{{usual, slow}, {slow, usual}} {
		samples := map[device.Call]float64{}
		for _, times := range rounds {
			keepFaster(samples, map[device.Call][]float64{c: times})
		}
		if got, want := samples[c], 10./9; math.Abs(got-want) > 1e-12 {
			t.Errorf("%v, want %v", got, want)
		}
	}
}
