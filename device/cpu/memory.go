package cpu

import (
	"fmt"

	"anneal/tensor"
)

// The device's memory is the host's, and every call is complete when it returns.

// NewArena implements device.Memory.
func (d *Device) NewArena(name string, size int) (*tensor.Arena, error) {
	return tensor.NewArena(name, size)
}

// NewShared implements device.Memory.
func (d *Device) NewShared(name string, size int) (*tensor.Arena, error) {
	return tensor.NewArena(name, size)
}

// Write implements device.Memory.
func (d *Device) Write(dst *tensor.Tensor, src []byte) {
	sameBytes("Write", dst, src)
	copy(dst.Raw(), src)
}

// Read implements device.Memory.
func (d *Device) Read(dst []byte, src *tensor.Tensor) {
	sameBytes("Read", src, dst)
	copy(dst, src.Raw())
}

func sameBytes(op string, t *tensor.Tensor, b []byte) {
	if t.Bytes() != len(b) {
		panic(fmt.Sprintf("cpu: %s: %v has %d bytes, not %d", op, t, t.Bytes(), len(b)))
	}
}

// Wait implements device.Memory.
func (d *Device) Wait() error { return nil }
