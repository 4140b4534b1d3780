package precision

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// NUM-8: the scale after each of a script of updates.
func TestLossScaleFollowsItsScript(t *testing.T) {
	s := LossScale{Dynamic: true, Scale: 65536, Interval: 2000, Floor: 1}
	for _, c := range []struct {
		good, overflows int // updates
		want            float64
	}{
		{1999, 0, 65536},
		{1, 0, 131072},
		{0, 1, 65536},
		{1999, 1, 32768}, // an overflow just before the interval is over starts it again
		{1999, 0, 32768},
		{1, 0, 65536},
		{0, 16, 1},
		{0, 3, 1}, // the floor
		{4000, 0, 4},
	} {
		for range c.good {
			s.Update(false)
		}
		for range c.overflows {
			s.Update(true)
		}
		if s.Scale != c.want {
			t.Fatalf("after %d good updates and %d overflows more the scale is %v, want %v",
				c.good, c.overflows, s.Scale, c.want)
		}
	}
}

// The trace of Megatron-LM's DynamicGradScaler with a hysteresis of 2: the first overflow is borne, those after it
// halve the scale until it grows again.
func TestLossScaleBearsOverflows(t *testing.T) {
	s := LossScale{Dynamic: true, Scale: 1024, Interval: 3, Floor: 1, Hysteresis: 2}
	want := []float64{1024, 1024, 512, 512, 256, 256, 256, 512, 512, 256}
	for i, overflow := range []bool{false, true, true, false, true, false, false, false, true, true} {
		if adapted := s.Update(overflow); !adapted || s.Scale != want[i] {
			t.Fatalf("after update %d the scale is %v, want %v; another may go well: %v", i, s.Scale, want[i], adapted)
		}
	}
}

// Against the definition read off the whole history: the scale doubles at the end of every Interval of good updates
// since it last changed and halves at an overflow, down to the floor.
func TestLossScaleIsAFunctionOfTheHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		interval := rapid.IntRange(1, 5).Draw(t, "interval")
		floor := math.Exp2(float64(rapid.IntRange(-2, 3).Draw(t, "log₂ floor")))
		init := floor * math.Exp2(float64(rapid.IntRange(0, 6).Draw(t, "log₂ of init above it")))
		dynamic := rapid.Bool().Draw(t, "dynamic")
		history := rapid.SliceOfN(rapid.Bool(), 0, 60).Draw(t, "overflows")
		s := LossScale{Dynamic: dynamic, Scale: init, Interval: interval, Floor: floor}
		for i, overflow := range history {
			before := s.Scale
			adapted := s.Update(overflow)
			run := 0 // good updates up to and with i, since the last overflow
			for j := i; j >= 0 && !history[j]; j-- {
				run++
			}
			want := before
			switch {
			case !dynamic:
			case overflow:
				want = math.Max(before/2, floor)
			case run%interval == 0:
				want = 2 * before
			}
			if s.Scale != want {
				t.Fatalf("update %d, overflow %v: scale %v → %v, want %v", i, overflow, before, s.Scale, want)
			}
			if wantAdapted := !overflow || dynamic && before > floor; adapted != wantAdapted {
				t.Fatalf("update %d, overflow %v at scale %v: adapted %v, want %v",
					i, overflow, before, adapted, wantAdapted)
			}
		}
		n := 0
		for _, o := range history {
			if o {
				n++
			}
		}
		if s.Overflow != n {
			t.Fatalf("%d overflows counted of %d", s.Overflow, n)
		}
	})
}
