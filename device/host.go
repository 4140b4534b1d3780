package device

import (
	"fmt"

	"anneal/tensor"
)

// Host is the host's own memory, for devices that compute there and for data that no device uses. Every call is
// complete when it returns. It implements Memory.
type Host struct{}

// NewArena implements Memory.
func (Host) NewArena(name string, size int) (*tensor.Arena, error) {
	return tensor.NewArena(name, size)
}

// NewShared implements Memory.
func (Host) NewShared(name string, size int) (*tensor.Arena, error) {
	return tensor.NewArena(name, size)
}

// Write implements Memory.
func (Host) Write(dst *tensor.Tensor, src []byte) {
	SameBytes("Write", dst, src)
	copy(dst.Raw(), src)
}

// Read implements Memory.
func (Host) Read(dst []byte, src *tensor.Tensor) {
	SameBytes("Read", src, dst)
	copy(dst, src.Raw())
}

// Wait implements Memory.
func (Host) Wait() error { return nil }

// SameBytes panics unless len(b) is the size of t. Devices use it in Write and Read.
func SameBytes(op string, t *tensor.Tensor, b []byte) {
	if t.Bytes() != len(b) {
		panic(fmt.Sprintf("device: %s: %v has %d bytes, not %d", op, t, t.Bytes(), len(b)))
	}
}

// OnHost returns t in host memory: t itself, or a copy if t is in a device's own memory.
func OnHost(m Memory, t *tensor.Tensor) *tensor.Tensor {
	if !t.Apart() {
		m.Wait() // a failure is kept for the next check
		return t
	}
	h := hostLike(t)
	m.Read(h.Raw(), t)
	return h
}

// Fill calls f to set all elements of t. If t is in a device's own memory, f sets those of a host tensor of zeros,
// which is then written to t.
func Fill(m Memory, t *tensor.Tensor, f func(host *tensor.Tensor)) {
	if !t.Apart() {
		m.Wait()
		f(t)
		return
	}
	h := hostLike(t)
	f(h)
	m.Write(t, h.Raw())
}

// hostLike returns zeros of t's dtype and shape on the Go heap.
func hostLike(t *tensor.Tensor) *tensor.Tensor {
	h := tensor.View(t.DType(), make([]byte, t.Bytes()), t.Shape()...)
	return &h
}
