package tensor

import (
	"fmt"
	"unsafe"
)

// Align is the alignment in bytes of every tensor in an Arena: one cache line, one AVX-512 register.
const Align = 64

// An Arena is a block of memory outside the Go heap, mapped once and handed out by moving a mark. It is how peak
// memory is known before a run and reported by name after it, and why a training step allocates nothing.
// An Arena is not safe for concurrent use.
type Arena struct {
	name  string
	base  unsafe.Pointer // nil of a measure
	size  int
	apart bool // in a device's own memory
	free  func() error
	used  int
	peak  int
}

// NewArena maps size bytes under a name that reports and errors use ("parameters", "activations", …). The operating
// system backs pages when they are first touched, so an arena costs what is used of it, not what was reserved.
func NewArena(name string, size int) (*Arena, error) {
	if size < 0 || size >= measureLimit {
		return nil, fmt.Errorf("cannot reserve %.1f MiB for %s: the size exceeds the address space", float64(size)/(1<<20), name)
	}
	size = max(size+Align-1, Align) &^ (Align - 1)
	mem, err := mapMemory(size)
	if err != nil {
		return nil, fmt.Errorf("cannot reserve %.1f MiB for %s: %w", float64(size)/(1<<20), name, err)
	}
	return &Arena{name: name, base: ptr(mem), size: size, free: func() error { return unmapMemory(mem) }}, nil
}

// Wrap returns an arena of size bytes of zeroed memory at an address that something else has reserved, aligned to Align. With
// apart it is a device's own memory, which the host must not touch. Close calls free once.
func Wrap(name string, address uintptr, size int, apart bool, free func() error) *Arena {
	// The address is of no Go memory, so that nothing can move or free what the pointer points to.
	return &Arena{name: name, base: *(*unsafe.Pointer)(unsafe.Pointer(&address)), size: size, apart: apart, free: free}
}

// NewMeasure returns an arena without memory or limit: its tensors must not be touched, and its Peak tells how large a
// real arena must be for the same calls.
func NewMeasure(name string) *Arena { return &Arena{name: name} }

// Backed reports whether the arena has memory: one made by NewMeasure has none.
func (a *Arena) Backed() bool { return a.base != nil }

// Apart reports whether the memory is a device's own, which the host must not touch.
func (a *Arena) Apart() bool { return a.apart }

// Name returns the name given to NewArena.
func (a *Arena) Name() string { return a.name }

// Size returns the bytes reserved.
func (a *Arena) Size() int { return a.size }

// Used returns the bytes handed out now.
func (a *Arena) Used() int { return a.used }

// Peak returns the most bytes ever handed out.
func (a *Arena) Peak() int { return a.peak }

// New returns a tensor of the arena's memory. Fresh memory is zero; memory reused after Release holds what was there.
// An arena that is too small is a planning error and panics with the sizes; one made by NewMeasure counts up to 2⁵⁸ bytes.
func (a *Arena) New(dtype DType, shape ...int) Tensor {
	var t Tensor
	t.set(dtype, shape)
	if a.base == nil {
		a.take(measuredBytes(&t))
		return t
	}
	need := (t.Bytes() + Align - 1) &^ (Align - 1)
	if need > a.size-a.used {
		panic(a.full(t))
	}
	if need > 0 {
		t.data = unsafe.Add(a.base, a.used)
	}
	t.apart = a.apart
	a.take(need)
	return t
}

func (a *Arena) take(n int) {
	a.used = min(a.used+n, measureLimit)
	a.peak = max(a.peak, a.used)
}

// measureLimit is more memory than any machine has. Measures stop there, so that sizes that overflow an int, such as those of
// a mistyped configuration, come out as too large and never as small.
const measureLimit = 1 << 58

// measuredBytes is what t takes of an arena, at most measureLimit.
func measuredBytes(t *Tensor) int {
	bytes := float64(t.dtype.Size())
	for _, d := range t.Shape() {
		bytes *= float64(d)
	}
	if bytes >= measureLimit {
		return measureLimit
	}
	return (t.Bytes() + Align - 1) &^ (Align - 1)
}

// full is apart from New so that New's tensor can stay on the stack.
func (a *Arena) full(t Tensor) string {
	return fmt.Sprintf("tensor: arena %s is full: %v needs %d bytes, %d of %d are used", a.name, &t, t.Bytes(), a.used, a.size)
}

// ForgetPeak makes Peak count from what is handed out now.
func (a *Arena) ForgetPeak() { a.peak = a.used }

// Mark returns a position to give to Release.
func (a *Arena) Mark() int { return a.used }

// Release takes back everything handed out since the mark.
func (a *Arena) Release(mark int) { a.used = mark }

// Close frees the memory; tensors of the arena must not be used afterwards.
func (a *Arena) Close() error {
	free := a.free
	a.base, a.free, a.size, a.used = nil, nil, 0, 0
	if free == nil {
		return nil
	}
	return free()
}
