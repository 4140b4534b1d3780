package main

import (
	"strings"
	"testing"
)

// A server whose keys and values do not fit is refused before it takes any memory, and so is one whose limits allow no
// request.
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
	for _, flag := range []string{"--sequences 0", "--sequences 65537", "--requests 0", "--timeout 0s", "--drain 0s"} {
		name, value, _ := strings.Cut(flag, " ")
		code, _, errs := anneal("serve", run, "--port", "0", name+"="+value)
		if code != exitUsage || !strings.Contains(errs, flag) {
			t.Errorf("%s: exit %d\n%s", flag, code, errs)
		}
	}
}
