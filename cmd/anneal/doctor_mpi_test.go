package main

import (
	"strings"
	"testing"

	"anneal/comm/mpi"
)

// A binary without MPI that is started as one of several ranks says how to build one with MPI.
func TestWithoutMPIItSaysHowToGetIt(t *testing.T) {
	if mpi.Built() {
		t.Skip("this binary has MPI")
	}
	w := newWorkshop(t)
	t.Setenv("OMPI_COMM_WORLD_RANK", "0")
	t.Setenv("OMPI_COMM_WORLD_SIZE", "2")
	for _, args := range [][]string{
		{"doctor", "mpi"},
		{"train", w.path("run.yaml"), "--out", w.path("ranks")},
	} {
		code, out, errs := anneal(args...)
		if code != exitUsage || !strings.Contains(out+errs, "go build -tags mpi ./cmd/anneal") {
			t.Errorf("%s: exit %d\n%s%s", args[0], code, out, errs)
		}
	}
}
