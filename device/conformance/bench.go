package conformance

import (
	"testing"

	"anneal/device"
	"anneal/tensor"
)

// A bench is the device under test with memory that the host touches too, in which all tensors of a test lie.
type bench struct {
	device.Device
	memory *tensor.Arena
}

// benchBytes is more memory than any single test needs.
const benchBytes = 64 << 20

func newBench(t *testing.T, d device.Device) bench {
	memory, err := d.NewShared("conformance", benchBytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { memory.Close() })
	return bench{d, memory}
}

// wait waits until all calls are complete. If the device has failed, the test fails.
func (b bench) wait(t interface {
	Helper()
	Fatal(...any)
}) {
	t.Helper()
	if err := b.Wait(); err != nil {
		t.Fatal(err)
	}
}

// place returns a copy of t in memory that the device can access.
func (b bench) place(t *tensor.Tensor) *tensor.Tensor {
	copied := b.memory.New(t.DType(), t.Shape()...)
	copy(copied.Raw(), t.Raw())
	return &copied
}

// of returns a tensor of the values in a storage format.
func (b bench) of(dt tensor.DType, values []float64, shape ...int) *tensor.Tensor {
	return b.place(of(dt, values, shape...))
}
