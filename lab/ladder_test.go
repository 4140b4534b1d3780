package lab

import (
	"math"
	"strings"
	"testing"
	"time"
)

// The time left of a study is that of all its runs at first, and falls by what each run trains: a branch only its
// decay.
func TestTimeLeftOfALadder(t *testing.T) {
	r := Rung{Dim: 8, Unit: 10, BatchTokens: 100, TokensPerSecond: 50}
	l := &Ladder{Rungs: []Rung{r}, Losses: map[string]float64{}}
	for _, step := range []struct {
		ended string
		left  float64
	}{{"", 188}, {"dim8-x8", 28}, {"dim8-x4", 12}, {"dim8-x1", 8}, {"dim8-x2", 0}} {
		if step.ended != "" {
			l.Losses[step.ended] = 3
		}
		if got := l.Left(); math.Abs(got-step.left) > 1e-9 {
			t.Errorf("after %q: %g s left, want %g", step.ended, got, step.left)
		}
	}
	l.Losses = nil
	if got := l.Left(); math.Abs(got-r.Seconds()) > 1e-9 {
		t.Errorf("at first: %g s left, want those of the rung: %g", got, r.Seconds())
	}
}

// The summary of a ladder counts the tokens that its runs train on: whole steps.
func TestSummaryOfALadderCountsItsSteps(t *testing.T) {
	r := Rung{Unit: 365, BatchTokens: 4096, Params: 229376}
	l := &Ladder{Rungs: []Rung{r, r, r}}
	want := "ladder: 3 sizes, each with 1.5M to 12M tokens; the largest has 52.1 per parameter"
	if got := l.summary(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A unit is at least five steps: with a large batch that may be more than a budget.
func TestALadderThatTakesLongerThanItsBudgetIsRefused(t *testing.T) {
	l := &Ladder{Rungs: []Rung{{Unit: 5, BatchTokens: 65536, TokensPerSecond: 1e4}}}
	if err := l.within(10 * time.Minute); err != nil {
		t.Error(err)
	}
	if err := l.within(time.Minute); err == nil || !strings.Contains(err.Error(), "train.batch_tokens = 65536") {
		t.Errorf("%v", err)
	}
}
