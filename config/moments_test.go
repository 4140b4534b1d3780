package config

import "testing"

func TestNarrowMomentsAreRefusedWhereNothingRounds(t *testing.T) {
	for _, x := range [][]string{
		{"precision=fp64"}, {"optimizer.name=lion"}, {"optimizer.name=soap"}, {"optimizer.name=adam8bit"},
	} {
		p := problemsOf(t, minimal, append(x, "optimizer.moments=bf16")...)
		if len(p) != 1 || p[0].Key != "optimizer.moments" || p[0].Try == "" {
			t.Errorf("%v: %+v", x, p)
		}
	}
}
