package tensor

import (
	"fmt"
	"unsafe"
)

// Align is the alignment in bytes of every tensor in an Arena: one cache line, one AVX-512 register.
const Align = 64

// An Arena is a block of memory outside the Go heap, mapped once and allocated by advancing a mark. Arenas make the
// peak memory known before a run and reported by name after it, and let training steps run without allocations. An
// Arena is not safe for concurrent use.
type Arena struct {
	name  string
	base  unsafe.Pointer // nil for measuring arenas
	size  int
	apart bool // in a device's own memory
	free  func() error
	used  int
	peak  int
}

// NewArena maps size bytes, under a name for reports and errors ("parameters", "activations", …). The operating system
// backs pages on first touch, so an arena costs only the memory that is used, not all that is reserved.
func NewArena(name string, size int) (*Arena, error) {
	if size < 0 {
		return nil, fmt.Errorf("cannot reserve %d bytes for %s: the size is negative", size, name)
	}
	if size >= measureLimit {
		return nil, fmt.Errorf("cannot reserve %.1f MiB for %s: the size exceeds the address space",
			float64(size)/(1<<20), name)
	}
	size = max(size+Align-1, Align) &^ (Align - 1)
	mem, err := mapMemory(size)
	if err != nil {
		return nil, fmt.Errorf("cannot reserve %.1f MiB for %s: %w", float64(size)/(1<<20), name, err)
	}
	return &Arena{name: name, base: ptr(mem), size: size, free: func() error { return unmapMemory(mem) }}, nil
}

// Wrap returns an arena of size bytes of zeroed memory at an address reserved elsewhere, aligned to Align. With apart
// the memory is a device's own, which the host must not access. Close calls free once.
func Wrap(name string, address uintptr, size int, apart bool, free func() error) *Arena {
	// The address is outside Go's memory, so the garbage collector does not move or free it.
	return &Arena{name: name, base: *(*unsafe.Pointer)(unsafe.Pointer(&address)), size: size, apart: apart, free: free}
}

// NewMeasure returns an arena without memory or limit. Its tensors must not be accessed; its Peak is the size that a
// real arena needs for the same calls.
func NewMeasure(name string) *Arena { return &Arena{name: name} }

// Part takes size bytes of a as an arena of its own, which is valid as long as a.
func (a *Arena) Part(size int) *Arena {
	mem := a.New(U8, size)
	return &Arena{name: a.name, base: mem.data, size: mem.Bytes(), apart: a.apart}
}

// Backed reports whether the arena has memory, unlike one from NewMeasure.
func (a *Arena) Backed() bool { return a.base != nil }

// Apart reports whether the memory is a device's own, which the host must not access.
func (a *Arena) Apart() bool { return a.apart }

// Name returns the name given to NewArena.
func (a *Arena) Name() string { return a.name }

// Size returns the number of bytes reserved.
func (a *Arena) Size() int { return a.size }

// Used returns the number of bytes allocated now.
func (a *Arena) Used() int { return a.used }

// Peak returns the largest number of bytes ever allocated.
func (a *Arena) Peak() int { return a.peak }

// New allocates a tensor. Fresh memory is zero; memory reused after Release holds its old contents. New panics if the
// arena is too small, which is a planning error, or a dimension is negative. A measuring arena counts up to 2⁵⁸ bytes.
func (a *Arena) New(dtype DType, shape ...int) Tensor {
	var t Tensor
	t.set(dtype, shape)
	if a.base == nil {
		a.take(aligned(t.boundedBytes()))
		return t
	}
	need := aligned(t.boundedBytes())
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

// measureLimit is more memory than any machine has. Measures stop there, so that sizes that overflow an int, such as
// those of a mistyped configuration, are reported as too large instead of small.
const measureLimit = 1 << 58

// boundedBytes is Bytes, but measureLimit for sizes above it, which may overflow an int.
func (t *Tensor) boundedBytes() int {
	bytes := float64(t.dtype.Size())
	for _, d := range t.Shape() {
		bytes *= float64(d)
	}
	if bytes >= measureLimit {
		return measureLimit
	}
	return t.Bytes()
}

// aligned rounds a number of bytes up to Align.
func aligned(bytes int) int { return (bytes + Align - 1) &^ (Align - 1) }

// full is a separate function so that New's tensor can stay on the stack.
func (a *Arena) full(t Tensor) string {
	return fmt.Sprintf("tensor: arena %s is full: %v needs %d bytes, %d of %d are used",
		a.name, &t, t.boundedBytes(), a.used, a.size)
}

// ForgetPeak resets Peak to the bytes allocated now.
func (a *Arena) ForgetPeak() { a.peak = a.used }

// Mark returns the current position, for Release.
func (a *Arena) Mark() int { return a.used }

// Release frees everything allocated since mark.
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
