package bench

import (
	"context"
	"math"
	"testing"
)

// What each strategy really takes is what its formula says, within 2 % (arenas align their tensors), and less than
// without it.
func TestMeasuredActivationsAreThePlanned(t *testing.T) {
	for _, precision := range []string{"bf16", "fp32"} {
		r, err := Memory(context.Background(),
			Options{Shape: "demo", Precision: precision, Threads: 1, Batch: 1, Context: 32},
			[]string{"selective", "sqrt", "every:3", "every_layer", "budget:350kB"})
		if err != nil {
			t.Fatal(err)
		}
		none := r.Cases[0]
		if none.Strategy != "none" || none.ExtraTime != 0 || none.ExtraCompute != 0 || none.Less != 1 {
			t.Errorf("the first case is %+v", none)
		}
		for i, c := range r.Cases {
			if off := float64(c.ActivationBytes-c.PlannedBytes) / float64(c.PlannedBytes); math.Abs(off) > 0.02 {
				t.Errorf("%s %s: %d bytes in use, %d planned", precision, c.Strategy, c.ActivationBytes, c.PlannedBytes)
			}
			if i > 0 && (c.ActivationBytes >= none.ActivationBytes || c.ExtraCompute <= 0) {
				t.Errorf("%s %s: %d bytes and %+.3f of the operations, without it %d",
					precision, c.Strategy, c.ActivationBytes, c.ExtraCompute, none.ActivationBytes)
			}
			if !(c.StepMs > 0) || len(c.times) != r.Rounds {
				t.Errorf("%s %s: %v ms, %d rounds of %d", precision, c.Strategy, c.StepMs, len(c.times), r.Rounds)
			}
		}
	}
}
