package main

import (
	"strings"
	"testing"
)

// A server whose keys and values do not fit is refused before it takes any memory, and so is one without a sequence.
func TestServeRefusesMoreSequencesThanFit(t *testing.T) {
	w := newWorkshop(t)
	run := w.path("run")
	w.object(exitOK, "train", w.path("run.yaml"), "--out", run)
	smallMachine(t, 1<<20)
	code, _, errs := anneal("serve", run, "--port", "0", "--sequences", "500")
	if code != exitResources || !strings.Contains(errs, "keys and values of 500 sequences") ||
		!strings.Contains(errs, "try a smaller --sequences") {
		t.Errorf("exit %d\n%s", code, errs)
	}
	for _, n := range []string{"0", "65537"} {
		if code, _, errs := anneal("serve", run, "--sequences", n); code != exitUsage ||
			!strings.Contains(errs, "--sequences "+n+" is not between") {
			t.Errorf("--sequences %s: exit %d\n%s", n, code, errs)
		}
	}
}
