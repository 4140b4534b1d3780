//go:build !cuda || !linux

package cuda

import (
	"errors"

	"anneal/device"
)

// Open says that this binary has no CUDA.
func Open(int) (device.Device, error) {
	return nil, errors.New("this binary was built without CUDA\n  build it on Linux with `go build -tags cuda ./cmd/anneal`, or leave out device=cuda")
}

// Examine says so too.
func Examine() Report { return Report{} }
