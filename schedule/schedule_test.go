package schedule

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// SCH-1: the tables of the closed forms, in the convention that position T is the last.
func TestClosedForms(t *testing.T) {
	wsd := func(shape Shape) WSD { return WSD{Warmup: 10, Steps: 100, Decay: 20, Shape: shape} }
	for _, c := range []struct {
		name string
		s    Schedule
		want map[int]float64
	}{
		{"cosine", Cosine{Warmup: 10, Steps: 100, Final: 0.1},
			map[int]float64{1: .1, 5: .5, 10: 1, 32: .873702910, 55: .55, 77: .237403733, 100: .1}},
		{"linear", Linear{Warmup: 10, Steps: 110, Final: 0.2},
			map[int]float64{1: .1, 10: 1, 11: .992, 60: .6, 85: .4, 110: .2, 120: .2}},
		{"inverse_sqrt", InverseSqrt{Warmup: 10},
			map[int]float64{5: .5, 10: 1, 20: .707106781, 40: .5, 90: .333333333, 1000: .1}},
		{"inverse_sqrt with a floor", InverseSqrt{Warmup: 10, Floor: 0.4}, map[int]float64{40: .5, 63: .4, 1000: .4}},
		{"constant", Constant{Warmup: 4}, map[int]float64{1: .25, 3: .75, 4: 1, 400: 1}},
		{"wsd linear", wsd(ShapeLinear),
			map[int]float64{5: .5, 80: 1, 81: .95, 85: .75, 90: .5, 95: .25, 100: 0, 105: 0}},
		{"wsd sqrt", wsd(ShapeSqrt), map[int]float64{80: 1, 81: .776393202, 85: .5, 90: .292893219,
			95: .133974596, 100: 0}},
		{"wsd cosine", wsd(ShapeCosine),
			map[int]float64{80: 1, 81: .993844170, 85: .853553391, 90: .5, 95: .146446609, 100: 0}},
		{"wsd shifted exponential", wsd(ShapeShifted),
			map[int]float64{80: 1, 81: .931872658, 85: .681792831, 90: .414213562, 95: .189207115, 100: 0}},
		// ½ in each twentieth, as MiniCPM decays: 0.5^((s−S)/T)
		{"wsd exponential", WSD{Warmup: 10, Steps: 100, Decay: 20, Final: 1.0 / 1024, Shape: ShapeExponential},
			map[int]float64{80: 1, 82: .5, 84: .25, 90: 1.0 / 32, 100: 1.0 / 1024, 105: 1.0 / 1024}},
		{"wsd that ends after the last", WSD{Warmup: 10, Steps: 101, Decay: 21, Shape: ShapeLinear},
			map[int]float64{80: 1, 81: 20.0 / 21, 100: 1.0 / 21}},
		{"one_cycle", OneCycle{Warmup: 31, Steps: 101, Final: 1e-5},
			map[int]float64{1: .04, 16: .52, 31: 1, 66: .500005, 101: 1e-5, 120: 1e-5}},
		{"wsds", WSDS{Warmup: 10, Ends: []int{50, 100}, Decays: []int{10, 20}, Final: 0.1, Shape: ShapeLinear},
			map[int]float64{5: .5, 40: 1, 45: .55, 50: .1, 51: 1, 80: 1, 90: .55, 100: .1, 120: .1}},
		{"step", Step{Warmup: 10, At: []int{80, 90}, Final: 0.1},
			map[int]float64{5: .5, 10: 1, 80: 1, 81: .316227766, 90: .316227766, 91: .1, 100: .1, 200: .1}},
		{"restarts", Restarts{Warmup: 2, Ends: []int{10, 30}, Final: 0.2}, // the same waves as cosine has
			map[int]float64{1: .5, 2: 1, 6: .6, 10: .2, 11: .995075336, 20: .6, 30: .2, 40: .2}},
		{"cyclic", Cyclic{Ends: []int{10, 30}, Final: 0.2},
			map[int]float64{1: .36, 5: 1, 10: .2, 15: .6, 20: 1, 30: .2, 40: .2}},
		{"power", Power{Warmup: 10, Steps: 100, Decay: 20, Shape: ShapeLinear},
			map[int]float64{5: .5, 10: 1, 20: .702222437, 80: .346277367, 90: .173138684, 100: 0, 120: 0}},
		{"sweep", Sweep{Low: 1e-4, High: 10, Steps: 101}, map[int]float64{1: 1e-4, 21: 1e-3, 41: 1e-2, 101: 10}},
	} {
		for at, want := range c.want {
			if got := c.s.Factor(at); math.Abs(got-want) > 1e-9*max(1, want) {
				t.Errorf("%s: factor %.12g at %d, want %.12g", c.name, got, at, want)
			}
		}
	}
}

// SCH-3.
func TestScheduleIsContinuousAndEndsAtTheFinalRatio(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.IntRange(20, 500).Draw(t, "steps")
		warm := rapid.IntRange(0, steps/4).Draw(t, "warmup")
		decay := rapid.IntRange(1, steps).Draw(t, "decay")
		final := rapid.Float64Range(0, 1).Draw(t, "final")
		floor := math.Sqrt(float64(max(warm, 1)) / float64(steps))
		stable := float64(min(decay, steps-warm))
		for _, c := range []struct {
			name  string
			s     Schedule
			end   float64
			slope float64 // the steepest of what follows warmup
		}{
			{"constant", Constant{warm}, 1, 0},
			{"linear", Linear{warm, steps, final}, final, 1 / float64(steps-warm)},
			{"cosine", Cosine{warm, steps, final}, final, math.Pi / 2 / float64(steps-warm)},
			{"inverse_sqrt", InverseSqrt{warm, final}, max(final, floor), 1},
			{"wsd linear", WSD{warm, steps, decay, final, ShapeLinear}, final, 1 / stable},
			// infinite slope where it begins
			{"wsd sqrt", WSD{warm, steps, decay, final, ShapeSqrt}, final, 1 / math.Sqrt(stable)},
			{"wsd cosine", WSD{warm, steps, decay, final, ShapeCosine}, final, math.Pi / 2 / stable},
			{"wsd shifted exponential", WSD{warm, steps, decay, final, ShapeShifted}, final, 2 * math.Ln2 / stable},
			{"wsd exponential", WSD{warm, steps, decay, 0.1 + 0.9*final, ShapeExponential}, 0.1 + 0.9*final,
				math.Ln10 / stable},
		} {
			for _, at := range []int{steps, steps + 7} {
				if got := c.s.Factor(at); math.Abs(got-c.end) > 1e-12 && (c.name != "inverse_sqrt" || at == steps) {
					t.Fatalf("%s: %v at %d of %d, want %v", c.name, got, at, steps, c.end)
				}
			}
			slope := max(1/float64(max(warm, 1)), c.slope) + 1e-12
			falling := false
			for i := 2; i <= steps; i++ {
				step := c.s.Factor(i) - c.s.Factor(i-1)
				if math.Abs(step) > slope {
					t.Fatalf("%s jumps by %v at %d of %d (warmup %d, decay %d, final %v), more than %v",
						c.name, step, i, steps, warm, decay, final, slope)
				}
				if falling && step > 1e-12 {
					t.Fatalf("%s rises again at %d of %d", c.name, i, steps)
				}
				falling = falling || step < -1e-12
			}
		}
	})
}

// SCH-2: mean rates over a whole run, of the continuous curves: cosine to a tenth ½(1+0.1), WSD over 20 % linear 0.9
// and 1−√x 0.8667.
func TestMeanRates(t *testing.T) {
	const steps = 100_000
	for _, c := range []struct {
		name string
		s    Schedule
		want float64
	}{
		{"cosine", Cosine{Steps: steps, Final: 0.1}, 0.55},
		{"wsd linear", WSD{Steps: steps, Decay: steps / 5, Shape: ShapeLinear}, 0.9},
		{"wsd sqrt", WSD{Steps: steps, Decay: steps / 5, Shape: ShapeSqrt}, 0.8 + 0.2/3},
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

// Each branch of WSD-S decays as the WSD run of that length does; between branches the rate is the peak.
func TestWSDSBranchesAreWSDRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := WSDS{Warmup: rapid.IntRange(1, 10).Draw(t, "warmup"), Final: 0.1, Shape: ShapeSqrt}
		from := 10
		for range rapid.IntRange(1, 5).Draw(t, "branches") {
			length := rapid.IntRange(2, 60).Draw(t, "length")
			s.Ends, s.Decays = append(s.Ends, from+length), append(s.Decays, rapid.IntRange(1, length).Draw(t, "decay"))
			from += length
		}
		at := 1
		for i, end := range s.Ends {
			run := WSD{Warmup: s.Warmup, Steps: end, Decay: s.Decays[i], Final: s.Final, Shape: s.Shape}
			for ; at <= end; at++ {
				if got, want := s.Factor(at), run.Factor(at); got != want {
					t.Fatalf("%+v: %v at %d, the run that ends at %d has %v", s, got, at, end, want)
				}
			}
		}
	})
}

// SCH-7: whatever the stages, tokens are the sum of the batches, batches are whole micro-batches, and they grow from
// the first to the full one and never fall when the stages do not.
func TestBatchRampAccountsForEveryToken(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := BatchRamp{Unit: rapid.IntRange(1, 64).Draw(t, "unit")}
		size, until := 1, 0
		for range rapid.IntRange(0, 4).Draw(t, "stages") {
			from := size
			size += rapid.IntRange(0, 8).Draw(t, "growth")
			until += rapid.IntRange(1, 5000).Draw(t, "tokens")
			if rapid.Bool().Draw(t, "flat") {
				from = size
			}
			r.Stages = append(r.Stages, Stage{from * r.Unit, size * r.Unit, until})
		}
		r.Full = size * r.Unit
		tokens, before := 0, 0
		for n := range 400 {
			if got := r.Tokens(n); got != tokens {
				t.Fatalf("%+v: %d tokens after %d steps, the batches sum to %d", r, got, n, tokens)
			}
			if got := r.Steps(tokens); got != n {
				t.Fatalf("%+v: %d tokens take %d steps, want %d", r, tokens, got, n)
			}
			if got := r.Steps(tokens + 1); got != n+1 {
				t.Fatalf("%+v: one token more than %d takes %d steps, want %d", r, tokens, got, n+1)
			}
			batch := r.Batch(tokens)
			if batch%r.Unit != 0 || batch < before || batch > r.Full || tokens >= until && batch != r.Full {
				t.Fatalf("%+v: batch %d after %d tokens, before it %d", r, batch, tokens, before)
			}
			tokens, before = tokens+batch, batch
		}
	})
}

// The closed form of a linear ramp: half of the way it has half of the growth.
func TestBatchRampTable(t *testing.T) {
	r := BatchRamp{Stages: []Stage{{100, 500, 1000}}, Full: 500, Unit: 100}
	for tokens, want := range map[int]int{0: 100, 249: 100, 250: 200, 500: 300, 999: 400, 1000: 500, 1 << 40: 500} {
		if got := r.Batch(tokens); got != want {
			t.Errorf("batch %d after %d tokens, want %d", got, tokens, want)
		}
	}
	steps := BatchRamp{Stages: []Stage{{64, 64, 640}, {128, 128, 1280}}, Full: 256, Unit: 64}
	if got := steps.Tokens(10 + 5 + 4); got != 640+640+1024 {
		t.Errorf("10 steps of 64, 5 of 128 and 4 of 256 are %d tokens, want 2304", got)
	}
}

func TestLengthRampTable(t *testing.T) {
	r := LengthRamp{From: 16, Full: 96, Steps: 80}
	for n, want := range map[int]int{1: 16, 8: 16, 9: 24, 16: 24, 17: 32, 32: 32, 33: 48, 80: 48, 81: 96, 1000: 96} {
		if got := r.Length(n); got != want {
			t.Errorf("length %d at step %d, want %d", got, n, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		full := 8 * rapid.IntRange(1, 300).Draw(t, "full")
		r := LengthRamp{
			From: 8 * rapid.IntRange(1, full/8).Draw(t, "from"), Full: full,
			Steps: rapid.IntRange(1, 500).Draw(t, "steps"),
		}
		before, same := 0, 1
		for n := 1; n < 510; n++ {
			got := r.Length(n)
			if same--; (got != before) != (same == 0) {
				t.Fatalf("%+v: length %d at step %d, before it %d; it stays so for %d steps", r, got, n, before, same)
			}
			if got != before {
				same = r.SameFor(n)
			}
			if got < before || full%got != 0 || got%8 != 0 || n > r.Steps && got != full {
				t.Fatalf("%+v: length %d at step %d, before it %d", r, got, n, before)
			}
			before = got
		}
	})
}
