//go:build !mpi || !linux

package mpi

import (
	"strings"
	"testing"
)

func TestOpenSaysHowToBuildWithMPI(t *testing.T) {
	if _, err := Open(Options{}); err == nil || !strings.Contains(err.Error(), "go build -tags mpi ./cmd/anneal") {
		t.Errorf("Open without MPI: %v", err)
	}
}
