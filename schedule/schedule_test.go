package schedule

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func near(t *testing.T, name string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6 {
		t.Errorf("%s: %v, want %v", name, got, want)
	}
}

// Closed-form values: the cosine at its quarter points, WSD's decay at tenths.
func TestClosedForms(t *testing.T) {
	c := Cosine{Warmup: 10, Steps: 110, Final: 0.1}
	near(t, "cosine warmup", c.Factor(5), 0.5)
	near(t, "cosine peak", c.Factor(10), 1)
	near(t, "cosine quarter", c.Factor(35), 0.1+0.9*0.5*(1+math.Sqrt2/2))
	near(t, "cosine half", c.Factor(60), 0.55)
	near(t, "cosine end", c.Factor(110), 0.1)

	w := WSD{Warmup: 10, Steps: 100, Decay: 20}
	near(t, "wsd stable", w.Factor(80), 1)
	for step, want := range map[int]float64{81: .95, 85: .75, 90: .5, 95: .25, 100: 0} {
		near(t, "wsd linear", w.Factor(step), want)
	}
	w.Sqrt = true
	for step, want := range map[int]float64{81: .776393, 85: .5, 90: .292893, 95: .133975, 100: 0} {
		near(t, "wsd sqrt", w.Factor(step), want)
	}
	near(t, "constant", Constant{Warmup: 4}.Factor(3), 0.75)
	near(t, "constant", Constant{Warmup: 4}.Factor(400), 1)
}

func TestScheduleIsContinuousAndEndsAtTheFinalRatio(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.IntRange(20, 500).Draw(t, "steps")
		warm := rapid.IntRange(0, steps/4).Draw(t, "warmup")
		decay := rapid.IntRange(1, steps).Draw(t, "decay")
		final := rapid.Float64Range(0, 1).Draw(t, "final")
		for name, s := range map[string]Schedule{
			"cosine": Cosine{warm, steps, final},
			"wsd":    WSD{Warmup: warm, Steps: steps, Decay: decay, Final: final},
		} {
			if got := s.Factor(steps); math.Abs(got-final) > 1e-12 {
				t.Fatalf("%s ends at %v, want %v", name, got, final)
			}
			if got := s.Factor(steps + 7); math.Abs(got-final) > 1e-12 {
				t.Fatalf("%s goes on to %v after its end, want %v", name, got, final)
			}
			// No jump is larger than the steepest slope of any phase.
			slope := max(1/float64(max(warm, 1)), math.Pi/2/float64(steps-warm), 1/float64(min(decay, steps-warm))) + 1e-12
			for i := 2; i <= steps; i++ {
				if jump := math.Abs(s.Factor(i) - s.Factor(i-1)); jump > slope {
					t.Fatalf("%s jumps by %v at %d of %d, more than %v", name, jump, i, steps, slope)
				}
			}
		}
	})
}

// Mean rates over a whole run, of the continuous curves: cosine to a tenth ½(1+0.1), WSD over 20 % linear 0.9 and 1−√x 0.8667.
func TestMeanRates(t *testing.T) {
	const steps = 100_000
	for _, c := range []struct {
		name string
		s    Schedule
		want float64
	}{
		{"cosine", Cosine{Steps: steps, Final: 0.1}, 0.55},
		{"wsd linear", WSD{Steps: steps, Decay: steps / 5}, 0.9},
		{"wsd sqrt", WSD{Steps: steps, Decay: steps / 5, Sqrt: true}, 0.8 + 0.2/3},
	} {
		sum := 0.0
		for i := 1; i <= steps; i++ {
			sum += c.s.Factor(i)
		}
		if got := sum / steps; math.Abs(got-c.want) > 1e-4 {
			t.Errorf("%s: mean %v of the peak, want %v", c.name, got, c.want)
		}
	}
}

// Until its decay begins a WSD run does not know its length: that is what lets it continue from a stable checkpoint.
func TestWSDStablePhaseDoesNotDependOnTheLength(t *testing.T) {
	short, long := WSD{Warmup: 7, Steps: 100, Decay: 20}, WSD{Warmup: 7, Steps: 1000, Decay: 200}
	for i := 1; i <= 80; i++ {
		if short.Factor(i) != long.Factor(i) {
			t.Fatalf("factors %v and %v differ at %d", short.Factor(i), long.Factor(i), i)
		}
	}
}
