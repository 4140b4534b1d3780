package device

import "anneal/tensor"

// Memory is where a device keeps tensors, and how their numbers pass between it and the host.
//
// A device may still be at work when a call returns; what it was asked for is done in that order. Read, Wait and the kernels that
// return a number wait for all that was asked for before. After a failure, such as a lost card, calls do nothing and
// numbers are NaN until someone asks with Wait.
type Memory interface {
	// NewArena reserves size bytes of the device's own memory. Where it is apart from the host's, the host cannot touch its tensors
	// (Tensor.Apart). The caller closes it before the device.
	NewArena(name string, size int) (*tensor.Arena, error)
	// NewShared reserves memory that the host and the device both touch, which may be slow for the device. The host reads or changes a
	// tensor there only after a Wait, unless the device has not been given it since the last one.
	NewShared(name string, size int) (*tensor.Arena, error)
	// Write copies src, the bytes of all of dst's elements, to dst. src may be changed once it returns.
	Write(dst *tensor.Tensor, src []byte)
	// Read copies all of src's elements to dst, as many bytes.
	Read(dst []byte, src *tensor.Tensor)
	// Wait returns when all calls are complete, with the first failure since the device was made, if there was any.
	Wait() error
}

// Memory that does not exist: its tensors count bytes.
func (Null) NewArena(name string, _ int) (*tensor.Arena, error)  { return tensor.NewMeasure(name), nil }
func (Null) NewShared(name string, _ int) (*tensor.Arena, error) { return tensor.NewMeasure(name), nil }
func (Null) Write(*tensor.Tensor, []byte)                        {}
func (Null) Read([]byte, *tensor.Tensor)                         {}
func (Null) Wait() error                                         { return nil }
