package bench

import (
	"testing"

	"anneal/device"
	"anneal/device/cpu/gemm"
	"anneal/device/devicetest"
	"anneal/tensor"
)

func distant(t *testing.T) *devicetest.Device {
	t.Helper()
	d, err := devicetest.New(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// Every product is measured in every format, with operands in the device's own memory.
func TestCardGEMMMeasuresEveryFormat(t *testing.T) {
	cases := []gemm.Case{
		{Name: "a", Form: device.NN, M: 32, N: 48, K: 16}, {Name: "b", Form: device.NT, M: 16, N: 16, K: 64},
		{Name: "c", Form: device.TN, M: 16, N: 32, K: 48},
	}
	seen := map[string]int{}
	r, err := CardGEMM(distant(t), cases, 0, func(c GEMMCase) {
		seen[c.DType]++
		if !(c.GFLOPS > 0) || c.FractionOfPeak != 0 {
			t.Errorf("%+v on a device whose peak is not known", c)
		}
	})
	if err != nil || len(r.Cases) != 12 || seen["bf16"] != 3 || seen["fp8"] != 3 || seen["tf32"] != 3 ||
		seen["fp32"] != 3 {
		t.Errorf("%d cases, %v, %v", len(r.Cases), seen, err)
	}
}

// A lost device ends the measurements, and is no speed.
func TestCardBenchesReportALostDevice(t *testing.T) {
	d := distant(t)
	d.FailAt = 3
	if _, err := CardGEMM(d, []gemm.Case{{Form: device.NN, M: 8, N: 8, K: 8}}, 0, func(GEMMCase) {}); err == nil {
		t.Error("products on a lost device were measured")
	}
	o := AttentionOptions{
		Patterns: []string{"full"}, Lengths: []int{64}, Heads: 1, HeadDim: 8, DType: tensor.BF16, Seconds: 1e-3,
	}
	if _, err := Attention(Shared(d), o, func(AttentionCase) {}); err == nil {
		t.Error("attention on a lost device was measured")
	}
}

func TestAttentionIsMeasuredOnADevice(t *testing.T) {
	o := AttentionOptions{
		Patterns: []string{"full", "window:32", "linear"}, Lengths: []int{64, 128}, Heads: 1, HeadDim: 8,
		DType: tensor.BF16, Seconds: 1e-3,
	}
	r, err := Attention(Shared(distant(t)), o, func(AttentionCase) {})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range r.Cases {
		if !(c.Seconds > 0) || c.FractionOfPeak != 0 || i%3 == 1 && !(c.OverDense > 0) {
			t.Errorf("%+v", c)
		}
	}
	if len(r.Cases) != 6 || r.Tier != "test" {
		t.Errorf("%d cases by %s", len(r.Cases), r.Tier)
	}
}
