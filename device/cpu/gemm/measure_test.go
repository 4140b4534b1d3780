package gemm

import (
	"testing"
	"time"

	"anneal/device"
	"anneal/device/cpu/pool"
	"anneal/internal/isa"
	"anneal/tensor"
)

// A product cannot be faster than the peak, but clocks change between the two measurements.
func TestProductsStayBelowPeak(t *testing.T) {
	p := pool.New(1)
	defer p.Close()
	eachTier(t, func(t *testing.T, tier isa.Tier) {
		e := New(tier, p)
		defer e.Close()
		for _, operand := range storage {
			peak := Peak(tier, operand, p, 20*time.Millisecond)
			rate, err := e.Measure(Case{"small", device.NN, 96, 96, 192}, operand, 5*time.Millisecond)
			if err != nil || rate <= 0 || rate > 1.5*peak {
				t.Errorf("%v: %v GFLOP/s, peak %v, error %v", operand, rate, peak, err)
			}
		}
		if peak := Peak(tier, tensor.F64, p, time.Millisecond); peak <= 0 {
			t.Errorf("f64: peak %v", peak)
		}
		peak := Peak(tier, tensor.F32, p, 0)
		rate, err := e.Measure(Case{"small", device.NN, 96, 96, 192}, tensor.F32, 0)
		if err != nil || rate < 1e-3 || peak <= 0 {
			t.Errorf("in no time: %v GFLOP/s, peak %v, error %v; want one run", rate, peak, err)
		}
	})
}
