package config

import (
	"strings"
	"testing"
)

// An optimizer without a schedule takes the constant one by itself, and names what does not go with its average.
func TestScheduleFreeRefusesWhatCannotWork(t *testing.T) {
	c, err := parse([]byte(minimal), "run.yaml", []string{"optimizer.name=schedulefree"})
	if err != nil || c.Schedule.Name != "constant" || c.Optimizer.LR != 2.5e-3 {
		t.Errorf("schedule %q at %v, %v", c.Schedule.Name, c.Optimizer.LR, err)
	}
	for _, x := range []struct{ key, set string }{
		{"schedule.name", "schedule.name=cosine"},
		{"schedule.name", "schedule.name=wsd"},
		{"train.batch_ramp", "train.batch_ramp=4096 over 65536"},
		{"average.ema", "average.ema=0.9"},
		{"precision", "precision=bf16_sr"},
		{"fp8.scaling", "precision=fp8 fp8.scaling=delayed"},
		{"parallel.outer.groups", "parallel.outer.groups=2 parallel.ranks=2"},
		{"model.mup", "model.mup=true"},
		{"optimizer.momentum", "optimizer.momentum=0.5"},
	} {
		p := problemsOf(t, minimal, append(splitSettings(x.set), "optimizer.name=schedulefree")...)
		if len(p) != 1 || p[0].Key != x.key || !strings.Contains(p[0].Message, "schedulefree") || p[0].Try == "" {
			t.Errorf("%s: %+v, want one of %s", x.set, p, x.key)
		}
	}
}
