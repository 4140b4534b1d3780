package bench

import (
	"context"
	"runtime"
	"testing"

	"anneal/machine"
)

// Every case of the comparison can be configured, and a machine without a profile says so.
func TestPlanCasesAreValid(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"XDG_CACHE_HOME", "LocalAppData", "HOME"} {
		t.Setenv(name, dir)
	}
	list := PlanCases("demo")
	if want := len(variants) + 2; len(list) < want {
		t.Errorf("%d cases with %d threads, want at least %d", len(list), runtime.GOMAXPROCS(0), want)
	}
	for _, c := range append(list, PlanCases("gpt2-small")...) {
		if _, err := c.config(); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := Plan(context.Background(), list[0]); err != machine.ErrNone {
		t.Errorf("without a profile: %v", err)
	}
}

// What only some steps of a round do is part of the measured step, and what slows one round down is not.
func TestMeasuredStepIsTheMeanOfARound(t *testing.T) {
	if got := measuredStep([][]float64{{3, 5}, {30, 4}}); got != 3.5 {
		t.Errorf("%v, want 3.5", got)
	}
}
