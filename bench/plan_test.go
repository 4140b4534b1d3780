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
