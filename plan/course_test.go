package plan

import (
	"fmt"
	"math"
	"testing"

	"anneal/train"
)

// twoSeconds is a prediction of 2 s a step: 1 s forward, half of it in attention, and 0.5 s of backward and of update
// each.
func twoSeconds() *Time {
	return &Time{Step: 2, attention: 0.5, Phases: map[string]float64{
		train.Forward.String(): 1, train.Backward.String(): 0.5, train.Updating.String(): 0.5,
	}}
}

func courseOf(t *testing.T, p *Time, overrides ...string) *Course {
	t.Helper()
	c, err := NewCourse(timed(t, overrides...), p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-9*math.Abs(want)+1e-9) {
		t.Errorf("%s: %v s left, want %v", what, got, want)
	}
}

// Before anything is measured, the prediction counts: 100 steps of 512 tokens and two evaluations of 1,024.
func TestCourseBeginsWithThePrediction(t *testing.T) {
	c := courseOf(t, twoSeconds())
	near(t, "at the start", c.Left(0), 100*2+2*2*1)
	near(t, "after the first evaluation", c.Left(50), 50*2+2*1)
	near(t, "at the end", c.Left(100), 0)
	if x := courseOf(t, nil).Left(0); !math.IsNaN(x) {
		t.Errorf("without a prediction %v s are left", x)
	}
}

// Steps that were measured decide how long others take; evaluations and checkpoints have times of their own.
func TestCourseFollowsWhatIsMeasured(t *testing.T) {
	c := courseOf(t, twoSeconds(), "checkpoint.every=10")
	for step := 1; step <= 40; step++ {
		c.Stepped(step, 3)
	}
	near(t, "steps of 3 s", c.Left(40), 60*3+2*3)
	c.Evaluated(7)
	near(t, "an evaluation of 7 s", c.Left(40), 60*3+2*7)
	c.Saved(0.5)
	near(t, "a checkpoint of 0.5 s", c.Left(40), 60*3+2*7+6*0.5)
	for step := 41; step <= 50; step++ { // the machine is slower now
		c.Stepped(step, 30)
	}
	if left := c.Left(50); math.Abs(left-(50*30+7+5*0.5)) > 0.01*left {
		t.Errorf("%v s are left of 50 steps that take 30 s lately", left)
	}
	unknown := courseOf(t, nil, "train.eval_every=0", "train.eval_tokens=512")
	unknown.Stepped(1, 3)
	near(t, "without a prediction", unknown.Left(1), 99*3+1)
}

// Steps that are yet to come and read less, or in shorter sequences, are predicted as such; a rate in tokens is not.
func TestCourseKnowsSmallerSteps(t *testing.T) {
	batch := []string{"train.batch_ramp=256 until 10240", "train.eval_every=0", "train.eval_tokens=0"}
	c := courseOf(t, twoSeconds(), batch...)
	near(t, "small batches first", c.Left(0), 40*(0.5+0.75)+60*2)
	for step := 1; step <= 20; step++ {
		c.Stepped(step, 2.5) // twice as long as predicted
	}
	near(t, "after half of the small batches", c.Left(20), 20*2.5+60*4)

	c = courseOf(t, twoSeconds(), "train.length_warmup=32 over 50%", "train.eval_every=0", "train.eval_tokens=0")
	short := 2 - 0.5*(1-33./65)
	if first := c.at(1); first.step != short {
		t.Errorf("a step of half the length takes %v s, want %v", first.step, short)
	}
	if last := c.at(100); last.step != 2 {
		t.Errorf("the last step takes %v s", last.step)
	}
	if left := c.Left(0); left >= 200 || left <= 100*short {
		t.Errorf("%v s in all", left)
	}
}

// A run whose steps nobody could visit one by one has its course at once.
func TestCourseOfVeryManySteps(t *testing.T) {
	const steps = 1 << 40
	warmup := "train.length_warmup=32 over 50%"
	c := courseOf(t, twoSeconds(), fmt.Sprintf("train.steps=%d", steps), "train.batch_ramp=256 until 10240", warmup,
		"train.eval_every=0", "train.eval_tokens=0")
	if a, b, z := c.at(1).step, c.at(41).step, c.at(steps).step; a >= b || b >= z || z != 2 {
		t.Errorf("the steps 1, 41 and %d take %v, %v and %v s", steps, a, b, z)
	}
}

// Each occasion is counted once, and the last step always is one.
func TestOccasions(t *testing.T) {
	for _, x := range [][4]int{{0, 100, 0, 1}, {0, 100, 50, 2}, {0, 101, 50, 3}, {50, 101, 50, 2}, {49, 101, 50, 3}} {
		if got := occasions(x[0], x[1], x[2]); got != x[3] {
			t.Errorf("from %d to %d, every %d: %d, want %d", x[0], x[1], x[2], got, x[3])
		}
	}
}

// A run whose length changes has that many steps left, and the evaluations that belong to them.
func TestCourseOfAnotherLength(t *testing.T) {
	c := courseOf(t, twoSeconds())
	c.SetSteps(80)
	near(t, "shorter", c.Left(50), 30*2+2*1)
	c.SetSteps(150)
	near(t, "longer", c.Left(50), 100*2+2*2*1)
}
