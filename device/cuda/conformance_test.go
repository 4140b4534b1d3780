//go:build cuda && linux

package cuda

import (
	"errors"
	"testing"

	"anneal/device"
	"anneal/device/conformance"
	"anneal/device/cuda/emulator"
)

// emulated makes the libraries of the emulated card those that are found.
func emulated(t *testing.T) {
	t.Helper()
	dir, err := emulator.Build()
	if errors.Is(err, emulator.ErrNoCompiler) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Setenv("ANNEAL_CUDA_PATH", dir)
}

func newEmulated(t *testing.T) *Device {
	t.Helper()
	emulated(t)
	d, err := New(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func TestTheEmulatedCardConforms(t *testing.T) {
	conformance.Run(t, func(t *testing.T) device.Device { return newEmulated(t) })
}
