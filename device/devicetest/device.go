package devicetest

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"unsafe"

	"anneal/device"
	"anneal/device/cpu"
	"anneal/tensor"
)

// A Device is the CPU in the role of a separate card. It implements device.Device.
type Device struct {
	// Free is the result of FreeMemory.
	Free int64
	// Calls counts the kernels called. When it reaches FailAt, unless that is 0, the device is lost.
	Calls, FailAt int
	// OnClose, unless nil, is called when the device is closed.
	OnClose func()

	device.Unknown // speed and scratch memory are unknown

	cpu    *cpu.Device
	spans  []span
	queue  []func()
	failed error
}

// span is the memory of an open arena.
type span struct {
	host *tensor.Arena
	from uintptr
	size int
}

var _ device.Device = (*Device)(nil)

// ErrLost is the failure of a lost device.
var ErrLost = errors.New("devicetest: the device was lost")

// New returns a device that computes with the given number of threads.
func New(threads int) (*Device, error) {
	c, err := cpu.New(threads)
	return &Device{cpu: c}, err
}

// The device describes itself as a GPU does.
func (d *Device) Name() string      { return "test device" }
func (d *Device) Kernels() string   { return "test" }
func (d *Device) Apart() bool       { return true }
func (d *Device) FreeMemory() int64 { return d.Free }
func (d *Device) LogitBytes() int   { return 512 << 20 }

// Close implements device.Device. Arenas must have been closed before.
func (d *Device) Close() {
	d.run()
	if len(d.spans) > 0 {
		panic(fmt.Sprintf("devicetest: closed before its arena %s", d.spans[0].host.Name()))
	}
	d.cpu.Close()
	if d.OnClose != nil {
		d.OnClose()
	}
}

// NewArena implements device.Memory.
func (d *Device) NewArena(name string, size int) (*tensor.Arena, error) {
	return d.reserve(name, size, true)
}

// NewShared implements device.Memory.
func (d *Device) NewShared(name string, size int) (*tensor.Arena, error) {
	return d.reserve(name, size, false)
}

func (d *Device) reserve(name string, size int, apart bool) (*tensor.Arena, error) {
	if d.failed != nil {
		return nil, d.failed
	}
	host, err := tensor.NewArena(name, size)
	if err != nil {
		return nil, err
	}
	all := host.New(tensor.U8, host.Size())
	s := span{host, uintptr(all.Pointer()), host.Size()}
	d.spans = append(d.spans, s)
	return tensor.Wrap(name, s.from, s.size, apart, func() error {
		d.run()
		d.spans = slices.DeleteFunc(d.spans, func(o span) bool { return o.from == s.from })
		return host.Close()
	}), nil
}

// Write implements device.Memory.
func (d *Device) Write(dst *tensor.Tensor, src []byte) {
	d.take(&dst)
	src = slices.Clone(src)
	d.later(func() { d.cpu.Write(dst, src) })
}

// Read implements device.Memory. After a failure all bytes are 255.
func (d *Device) Read(dst []byte, src *tensor.Tensor) {
	d.take(&src)
	d.later(func() { d.cpu.Read(dst, src) })
	if d.run(); d.failed != nil {
		for i := range dst {
			dst[i] = 0xff
		}
	}
}

// Wait implements device.Memory.
func (d *Device) Wait() error {
	d.run()
	return d.failed
}

// later appends a call to the queue.
func (d *Device) later(call func()) {
	if d.Calls++; d.Calls == d.FailAt {
		d.run()
		d.failed = ErrLost
	}
	if d.failed == nil {
		d.queue = append(d.queue, call)
	}
}

// number queues a call, runs the queue and returns the call's result, NaN after a failure.
func (d *Device) number(call func() float64) float64 {
	x := math.NaN()
	d.later(func() { x = call() })
	d.run()
	return x
}

// numbers queues a call that writes numbers for the host, NaN after a failure.
func (d *Device) numbers(to []float64, call func()) {
	for i := range to {
		to[i] = math.NaN()
	}
	d.later(call)
	d.run()
}

// run executes all calls of the queue.
func (d *Device) run() {
	for _, call := range d.queue {
		call()
	}
	d.queue = d.queue[:0]
}

// take replaces tensors by copies of their current contents in host memory. It panics for tensors outside of the
// device's memory.
func (d *Device) take(list ...**tensor.Tensor) {
	for _, t := range list {
		if (*t).IsZero() {
			continue
		}
		*t = d.view(*t)
	}
}

func (d *Device) view(t *tensor.Tensor) *tensor.Tensor {
	at := uintptr(t.Pointer())
	if t.Len() > 0 && !slices.ContainsFunc(d.spans,
		func(s span) bool { return s.from <= at && at+uintptr(t.Bytes()) <= s.from+uintptr(s.size) }) {
		_, file, line, _ := runtime.Caller(3)
		panic(fmt.Sprintf("devicetest: %s:%d hands over %v, which is not in the device's memory", file, line, t))
	}
	v := tensor.View(t.DType(), unsafe.Slice((*byte)(t.Pointer()), t.Bytes()), t.Shape()...)
	return &v
}

// cache is take for a cache, which holds its tensors by value.
func (d *Device) cache(c *device.Cache) *device.Cache {
	copied := *c
	for _, t := range []*tensor.Tensor{&copied.KV, &copied.State, &copied.Gates} {
		if !t.IsZero() {
			*t = *d.view(t)
		}
	}
	return &copied
}
