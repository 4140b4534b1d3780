//go:build cuda && linux

package cuda

import (
	"fmt"
	"math"
	"unsafe"

	"anneal/device/cuda/driver"
	"anneal/tensor"
)

// A call is a kernel and its arguments, in order. The device has one, so that calls do not allocate:
//
//	c := d.begin("norm", "rms_norm", y.DType())
//	c.tensor(y)
//	c.int(rows)
//	c.launch(rows, 256, 0)
type call struct {
	d      *Device
	kernel *kernel // nil after a failure: nothing is launched
	name   string
	wide   bool // arithmetic is double
	n      int
	values [maxArguments]uint64
	places [maxArguments]unsafe.Pointer // addresses of the values
}

const maxArguments = 32

// A define is a compile-time choice of a kernel: a line #define name value.
type define struct{ name, value string }

// begin starts the call of a kernel for the storage type t. The kernel is compiled with T as that type, A as its
// arithmetic, and the other choices.
func (d *Device) begin(file, name string, t tensor.DType, choices ...define) *call {
	c := &d.call
	*c = call{d: d, name: name, wide: t == tensor.F64}
	if d.err == nil {
		c.kernel = d.kernel(file, name, t, choices)
	}
	return c
}

// tensor adds a pointer to the elements of t; null if t is nil.
func (c *call) tensor(t *tensor.Tensor) {
	if t.IsZero() {
		c.word(0)
		return
	}
	c.word(uint64(uintptr(t.Pointer())))
}

// pointer adds a pointer.
func (c *call) pointer(p driver.Pointer) { c.word(uint64(p)) }

// int adds a long long.
func (c *call) int(n int) { c.word(uint64(n)) }

// bool adds a long long, 1 or 0.
func (c *call) bool(b bool) {
	c.word(0)
	if b {
		c.values[c.n-1] = 1
	}
}

// real adds an A, the type of arithmetic.
func (c *call) real(x float64) {
	if c.wide {
		c.double(x)
	} else {
		c.float(x)
	}
}

// float adds a float.
func (c *call) float(x float64) { c.word(uint64(math.Float32bits(float32(x)))) }

// double adds a double.
func (c *call) double(x float64) { c.word(math.Float64bits(x)) }

// word adds an unsigned long long.
func (c *call) word(x uint64) {
	c.values[c.n] = x
	c.n++
}

// launch runs the call with the given number of blocks, threads per block and bytes of dynamic shared memory. It does
// nothing for 0 blocks.
func (c *call) launch(blocks, threads, shared int) { c.grid(blocks, 1, 1, threads, shared) }

// grid is launch for blocks in three dimensions. y and z are at most 65,535.
func (c *call) grid(x, y, z, threads, shared int) {
	if c.kernel == nil || x == 0 || y == 0 || z == 0 {
		return
	}
	for i := range c.n {
		c.places[i] = unsafe.Pointer(&c.values[i])
	}
	d, k := c.d, c.kernel
	d.do(func() error {
		if shared > k.shared {
			if err := d.driver.SetSharedLimit(k.function, shared); err != nil {
				return fmt.Errorf("kernel %s with %d bytes of shared memory a block: %w", c.name, shared, err)
			}
			k.shared = shared
		}
		err := d.timed(c.name, func() error {
			return d.driver.Launch(k.function, [3]int{x, y, z}, threads, shared, d.stream, &c.places[0])
		})
		if err != nil {
			return fmt.Errorf("kernel %s on %d×%d×%d blocks of %d threads: %w", c.name, x, y, z, threads, err)
		}
		return nil
	})
}
