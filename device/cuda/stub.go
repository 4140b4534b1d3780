//go:build !cuda || !linux

package cuda

import (
	"errors"

	"anneal/device"
)

// Open returns an error: this binary has no CUDA support.
func Open(int) (device.Device, error) {
	return nil, errors.New("this binary was built without CUDA\n" +
		"  build it on Linux with `go build -tags cuda ./cmd/anneal`, or leave out device=cuda")
}

// OpenAt is Open.
func OpenAt(int) (device.Device, error) { return Open(0) }

// Examine returns an empty report.
func Examine() Report { return Report{} }
