package bench

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
)

// Training on random tokens learns nothing: the loss is ln V. The rates follow from the median and the shape.
func TestBenchStepIsARealStep(t *testing.T) {
	r, err := Step(context.Background(), Options{Shape: "demo", Precision: "fp32", Threads: 1, Batch: 2, Context: 32})
	if err != nil {
		t.Fatal(err)
	}
	m := Shapes["demo"].Model
	if want := math.Log(float64(m.Vocab)); math.Abs(r.Loss-want) > 0.15 {
		t.Errorf("loss %v, want ln %d = %v", r.Loss, m.Vocab, want)
	}
	if want := 2 * 32 / (r.StepMsMedian / 1e3); math.Abs(r.TokensPerSecond-want) > 1e-6*want {
		t.Errorf("%v tokens a second at %v ms for 64 tokens, want %v", r.TokensPerSecond, r.StepMsMedian, want)
	}
	// 6 for each parameter in a product (q, k, v, out, gate, up and down of each layer, and the head),
	// 6·layers·context·dim for attention.
	flops := 6*(m.Layers*(4*m.Dim*m.Dim+3*m.Dim*m.FFN)+m.Vocab*m.Dim) + 6*m.Layers*32*m.Dim
	if want := r.TokensPerSecond * float64(flops) / 1e9; math.Abs(r.GFLOPS-want) > 1e-6*want ||
		math.Abs(r.FractionOfPeak-r.GFLOPS/r.PeakGFLOPS) > 1e-9 {
		t.Errorf("%v GFLOP/s, %v of %v; want %v", r.GFLOPS, r.FractionOfPeak, r.PeakGFLOPS, want)
	}
	arithmetic := 2 * 32 * float64(flops) / (r.PeakGFLOPS * 1e3) // µs
	if got := r.LayerOverheadUs*float64(m.Layers) + arithmetic; math.Abs(got-1e3*r.StepMsMedian) > 1e-6*got {
		t.Errorf("%v µs a layer and %v µs of arithmetic in steps of %v ms",
			r.LayerOverheadUs, arithmetic, r.StepMsMedian)
	}
	if r.Steps < 3 || r.FirstStepSeconds <= 0 || r.Threads != 1 {
		t.Errorf("%+v", r)
	}
}

// The overhead of the shape micro is that of one of its micro-batches.
func TestBenchStepMicroHasManyMicroBatches(t *testing.T) {
	r, err := Step(context.Background(), Options{Shape: "micro", Precision: "fp32", Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := 1e3 * r.StepMsMedian * (1 - r.FractionOfPeak) / float64(16*Shapes["micro"].Model.Layers)
	if math.Abs(r.LayerOverheadUs-want) > 1e-6*want || r.Parameters < 1e4 || r.Parameters > 1e6 {
		t.Errorf("%v µs a layer, want %v; %d parameters", r.LayerOverheadUs, want, r.Parameters)
	}
}

func TestBenchStepRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Shape: "llama-1t", Precision: "bf16"}, "demo, gpt2-small, llama-1.1b, llama-98m, micro, tiny"},
		{Options{Shape: "tiny", Precision: "fp7"}, "fp7"},
		{Options{Shape: "tiny", Precision: "bf16", Batch: -1}, "a batch of -1"},
		{Options{Shape: "tiny", Precision: "bf16", Context: -64}, "a context of -64"},
		{Options{Shape: "tiny", Precision: "bf16", Seconds: math.NaN()}, "NaN seconds"},
	} {
		if _, err := Step(context.Background(), c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v does not say %q", c.o, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Step(ctx, Options{Shape: "demo", Precision: "bf16", Batch: 1, Context: 32}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
