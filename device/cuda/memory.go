//go:build cuda && linux

package cuda

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"

	"anneal/device/cuda/driver"
	"anneal/tensor"
)

// stagingHalf is the size in bytes of a copy between host and card through pinned memory.
const stagingHalf = 8 << 20

// memory holds the reservations of a device.
type memory struct {
	reserved []reservation

	scratch     driver.Pointer
	scratchSize int

	staging driver.Pointer // two halves: the host fills one while the card reads the other
	events  [2]driver.Event

	answers     driver.Pointer // host memory for kernels that return numbers
	answersRoom int            // of float64

	kept []driver.Pointer
}

// A reservation is an arena or the device's own memory, for error messages.
type reservation struct {
	name string
	size int
}

// open reserves the memory for copies.
func (m *memory) open(d *Device) func() error {
	return func() (err error) {
		if m.staging, err = d.driver.AllocHost(2 * stagingHalf); err != nil {
			return err
		}
		for i := range m.events {
			if m.events[i], err = d.driver.NewEvent(); err != nil {
				return err
			}
		}
		return nil
	}
}

func (m *memory) close(drv *driver.Driver) {
	for _, p := range append(m.kept, m.scratch) {
		if p != 0 {
			drv.Free(p)
		}
	}
	for _, p := range []driver.Pointer{m.staging, m.answers} {
		if p != 0 {
			drv.FreeHost(p)
		}
	}
	for _, e := range m.events {
		if e != 0 {
			drv.DestroyEvent(e)
		}
	}
}

// NewArena implements device.Memory.
func (d *Device) NewArena(name string, size int) (*tensor.Arena, error) {
	return d.newArena(name, size, true)
}

// NewShared implements device.Memory with host memory that the card accesses across the bus.
func (d *Device) NewShared(name string, size int) (*tensor.Arena, error) {
	return d.newArena(name, size, false)
}

func (d *Device) newArena(name string, size int, apart bool) (*tensor.Arena, error) {
	size = max(size+tensor.Align-1, tensor.Align) &^ (tensor.Align - 1)
	p, err := d.reserve(name, size, apart)
	if err != nil {
		return nil, err
	}
	free := func() (err error) {
		d.memory.forget(name, size)
		d.Wait()
		d.do(func() error {
			if apart {
				err = d.driver.Free(p)
			} else {
				err = d.driver.FreeHost(p)
			}
			return nil
		})
		return err
	}
	return tensor.Wrap(name, uintptr(p), size, apart, free), nil
}

// reserve returns zeroed memory. Lack of memory is not a failure of the device, which remains usable.
func (d *Device) reserve(name string, size int, apart bool) (p driver.Pointer, err error) {
	d.do(func() error {
		if !apart {
			if p, err = d.driver.AllocHost(size); err == nil {
				clear(hostBytes(p, size))
			}
			return nil
		}
		if p, err = d.driver.Alloc(size); err == nil {
			return d.driver.Set(p, 0, size, d.stream)
		}
		return nil
	})
	if err == nil {
		err = d.err
	}
	if err != nil {
		return 0, d.refused(name, size, apart, err)
	}
	d.memory.reserved = append(d.memory.reserved, reservation{name, size})
	return p, nil
}

// refused returns an error that names the requested memory and all reservations.
func (d *Device) refused(name string, size int, apart bool, err error) error {
	var failed *driver.Error
	if !errors.As(err, &failed) || failed.Code != driver.OutOfMemory {
		return fmt.Errorf("cannot reserve %s for %s: %w", mebibytes(size), name, err)
	}
	var held []string
	for _, r := range d.memory.reserved {
		held = append(held, r.name+" "+mebibytes(r.size))
	}
	if held == nil {
		held = []string{"nothing"}
	}
	if !apart {
		return fmt.Errorf("cannot reserve %s for %s in host memory accessible to %s: %w\n  reserved so far: %s",
			mebibytes(size), name, d.card.Name, failed, strings.Join(held, ", "))
	}
	var free int
	d.do(func() error {
		free, _, _ = d.driver.MemInfo()
		return nil
	})
	return fmt.Errorf("%s has no room for %s, %s: %s of %s are free\n  reserved so far: %s\n  try a smaller batch "+
		"with more accumulation, a shorter context or recomputation; nvidia-smi shows the memory of other processes",
		d.card.Name, name, mebibytes(size), mebibytes(free), mebibytes(d.card.Memory), strings.Join(held, ", "))
}

func (m *memory) forget(name string, size int) {
	if i := slices.Index(m.reserved, reservation{name, size}); i >= 0 {
		m.reserved = slices.Delete(m.reserved, i, i+1)
	}
}

func mebibytes(n int) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// scratch returns memory of the card for the current method; the next caller gets the same memory. Growing waits for
// the card, which only happens in the first steps of a run. If there is not enough memory, the device fails.
func (d *Device) scratch(size int) driver.Pointer {
	m := &d.memory
	if size <= m.scratchSize {
		return m.scratch
	}
	d.Wait()
	d.do(func() error {
		if m.scratch != 0 {
			m.forget("scratch", m.scratchSize)
			err := d.driver.Free(m.scratch)
			m.scratch, m.scratchSize = 0, 0
			return err
		}
		return nil
	})
	if d.err != nil {
		return 0
	}
	p, err := d.reserve("scratch", size, true)
	if err != nil {
		d.fail(err)
		return 0
	}
	m.scratch, m.scratchSize = p, size
	return p
}

// keep copies data to the card until the device is closed: tables, patterns.
func (d *Device) keep(name string, data []byte) driver.Pointer {
	if d.err != nil || len(data) == 0 {
		return 0
	}
	p, err := d.reserve(name, len(data), true)
	if err != nil {
		d.fail(err)
		return 0
	}
	d.memory.kept = append(d.memory.kept, p)
	d.copyIn(p, data)
	return p
}

// answers returns memory for n float64 that kernels write and collect reads. It is the same memory every time.
func (d *Device) answers(n int) driver.Pointer {
	m := &d.memory
	if n <= m.answersRoom {
		return m.answers
	}
	d.Wait()
	d.do(func() error {
		if m.answers != 0 {
			d.driver.FreeHost(m.answers)
			m.answers, m.answersRoom = 0, 0
		}
		p, err := d.driver.AllocHost(8 * max(n, 512))
		if err == nil {
			m.answers, m.answersRoom = p, max(n, 512)
		}
		return err
	})
	return m.answers
}

// collect waits and returns the first n answers, or NaN after a failure. They are valid until the next call of
// answers.
func (d *Device) collect(n int) []float64 {
	if d.Wait() != nil {
		return slices.Repeat([]float64{math.NaN()}, n)
	}
	p := d.memory.answers
	return unsafe.Slice(*(**float64)(unsafe.Pointer(&p)), n)
}

// Write implements device.Memory.
func (d *Device) Write(dst *tensor.Tensor, src []byte) {
	if len(src) != dst.Bytes() {
		panic(fmt.Sprintf("cuda: write of %d bytes into %v, which has %d", len(src), dst, dst.Bytes()))
	}
	if dst.Apart() {
		d.copyIn(driver.Pointer(dst.Pointer()), src)
	} else if d.Wait() == nil {
		copy(dst.Raw(), src)
	}
}

func (d *Device) copyIn(dst driver.Pointer, src []byte) {
	m := &d.memory
	d.do(func() error {
		for i := 0; i*stagingHalf < len(src); i++ {
			from, half := i*stagingHalf, m.staging+driver.Pointer(i%2*stagingHalf)
			n := min(stagingHalf, len(src)-from)
			if err := d.driver.WaitEvent(m.events[i%2]); err != nil {
				return err
			}
			copy(hostBytes(half, n), src[from:])
			if err := d.driver.CopyIn(dst+driver.Pointer(from), half, n, d.stream); err != nil {
				return err
			}
			if err := d.driver.Record(m.events[i%2], d.stream); err != nil {
				return err
			}
		}
		return nil
	})
}

// Read implements device.Memory. After a failure all bytes are 255, which is NaN in every format.
func (d *Device) Read(dst []byte, src *tensor.Tensor) {
	if len(dst) != src.Bytes() {
		panic(fmt.Sprintf("cuda: read of %[3]d bytes from %[1]v, which has %[2]d", src, src.Bytes(), len(dst)))
	}
	if src.Apart() {
		d.copyOut(dst, driver.Pointer(src.Pointer()))
	} else if d.Wait() == nil {
		copy(dst, src.Raw())
	}
	if d.err != nil {
		for i := range dst {
			dst[i] = 0xff
		}
	}
}

// copyOut requests the next part before it copies the current one.
func (d *Device) copyOut(dst []byte, src driver.Pointer) {
	m := &d.memory
	ask := func(from int) error {
		half := from / stagingHalf % 2
		if err := d.driver.CopyOut(m.staging+driver.Pointer(half*stagingHalf), src+driver.Pointer(from),
			min(stagingHalf, len(dst)-from), d.stream); err != nil {
			return err
		}
		return d.driver.Record(m.events[half], d.stream)
	}
	d.do(func() error {
		if len(dst) == 0 {
			return nil
		}
		if err := ask(0); err != nil {
			return err
		}
		for from := 0; from < len(dst); from += stagingHalf {
			if next := from + stagingHalf; next < len(dst) {
				if err := ask(next); err != nil {
					return err
				}
			}
			half := from / stagingHalf % 2
			if err := d.driver.WaitEvent(m.events[half]); err != nil {
				return err
			}
			copy(dst[from:], hostBytes(m.staging+driver.Pointer(half*stagingHalf), min(stagingHalf, len(dst)-from)))
		}
		return nil
	})
}

// hostBytes returns pinned host memory as bytes.
func hostBytes(p driver.Pointer, n int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&p)), n)
}
