package conformance

import (
	"testing"

	"anneal/tensor"
)

// What the rule must let pass and what it must catch, for one value of 1 beside an exact reference.
func TestCompareAllowsRoundingAndNothingElse(t *testing.T) {
	third := 1.0 / 3
	for _, c := range []struct {
		name string
		dt   tensor.DType
		got  float64
		want float64
		ok   bool
	}{
		{"bf16 rounded", tensor.BF16, third, third, true},
		{"bf16 one unit away from rounded", tensor.BF16, third + 1.0/512, third, false},
		{"f32 rounded", tensor.F32, third, third, true},
		{"f32 off by 1e-5", tensor.F32, third + 1e-5, third, false},
		{"f64 off by 1e-15", tensor.F64, third + 1e-15, third, true},
		{"f64 off by 1e-11", tensor.F64, third + 1e-11, third, false},
		{"NaN instead of a number", tensor.F32, nan, 1, false},
		{"a number instead of NaN", tensor.F32, 1, nan, false},
		{"NaN for NaN", tensor.F32, nan, nan, true},
		{"Inf instead of a number", tensor.BF16, inf, 1, false},
		{"a number instead of Inf", tensor.BF16, 1, inf, false},
		{"Inf for Inf", tensor.BF16, inf, inf, true},
		{"the other Inf", tensor.F64, -inf, inf, false},
	} {
		naive := [][]float64{{1, float64(float32(c.want))}}
		err := (&call{}).compare(of(c.dt, []float64{1, c.got}), []float64{1, c.want}, naive)
		if (err == nil) != c.ok {
			t.Errorf("%s: compare says %v", c.name, err)
		}
	}
	if err := (&call{exactly: true}).compare(of(tensor.F32, []float64{1 + 0x1p-23}), []float64{1}, nil); err == nil {
		t.Error("exactly lets the next float32 pass")
	}
}
