//go:build !mpi || !linux

package mpi

import "errors"

const built = false

// Open returns an error: this binary has no MPI.
func Open(Options) (Group, error) {
	return nil, errors.New("this anneal was built without MPI: go build -tags mpi ./cmd/anneal (on Linux)")
}
