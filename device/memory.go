package device

import "anneal/tensor"

// Memory allocates a device's tensors and copies their numbers between device and host.
//
// Calls may return before the device has finished; it executes them in order. Read, Wait and the kernels that return
// a number wait for all earlier calls. After a failure, such as a lost card, calls do nothing and numbers are NaN
// until Wait returns the failure.
type Memory interface {
	// NewArena reserves size bytes of the device's own memory. If that memory is apart from the host's, the host
	// cannot access its tensors (Tensor.Apart). The caller closes it before the device.
	NewArena(name string, size int) (*tensor.Arena, error)
	// NewShared reserves memory that both the host and the device can access, which may be slow for the device. The
	// host may read or change a tensor there only after a Wait, unless no call since the last Wait used it.
	NewShared(name string, size int) (*tensor.Arena, error)
	// Write copies src, the bytes of all of dst's elements, to dst. src may be changed once Write returns.
	Write(dst *tensor.Tensor, src []byte)
	// Read copies the bytes of all of src's elements to dst.
	Read(dst []byte, src *tensor.Tensor)
	// Wait blocks until all calls are complete. It returns the first failure since the device was created, if any.
	Wait() error
}

// Arenas without memory: their tensors count bytes.
func (Null) NewArena(name string, _ int) (*tensor.Arena, error)  { return tensor.NewMeasure(name), nil }
func (Null) NewShared(name string, _ int) (*tensor.Arena, error) { return tensor.NewMeasure(name), nil }
func (Null) Write(*tensor.Tensor, []byte)                        {}
func (Null) Read([]byte, *tensor.Tensor)                         {}
func (Null) Wait() error                                         { return nil }
