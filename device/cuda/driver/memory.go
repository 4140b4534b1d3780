//go:build cuda && linux

package driver

import (
	"unsafe"

	"anneal/internal/dynlib"
)

// A Pointer is an address in a card's memory, a CUdeviceptr.
type Pointer uintptr

type memoryFunctions struct {
	getInfo, alloc, free, hostAlloc, freeHost, toDevice, toHost, within, set dynlib.Function
}

func (m *memoryFunctions) names() []dynlib.Named {
	return []dynlib.Named{
		{Name: "cuMemGetInfo_v2", To: &m.getInfo},
		{Name: "cuMemAlloc_v2", To: &m.alloc},
		{Name: "cuMemFree_v2", To: &m.free},
		{Name: "cuMemHostAlloc", To: &m.hostAlloc},
		{Name: "cuMemFreeHost", To: &m.freeHost},
		{Name: "cuMemcpyHtoDAsync_v2", To: &m.toDevice},
		{Name: "cuMemcpyDtoHAsync_v2", To: &m.toHost},
		{Name: "cuMemcpyAsync", To: &m.within},
		{Name: "cuMemsetD8Async", To: &m.set},
	}
}

// MemInfo returns the free and the total memory of the current context's card, in bytes.
func (d *Driver) MemInfo() (free, total int, err error) {
	var f, t uint64
	err = d.check("cuMemGetInfo", d.memory.getInfo.Call(uintptr(unsafe.Pointer(&f)), uintptr(unsafe.Pointer(&t))))
	return int(f), int(t), err
}

// Alloc reserves memory of the card, at least 256-byte aligned. Its contents are undefined.
func (d *Driver) Alloc(size int) (p Pointer, err error) {
	err = d.check("cuMemAlloc", d.memory.alloc.Call(uintptr(unsafe.Pointer(&p)), uintptr(size)))
	return p, err
}

// Free frees memory of Alloc, after all pending work.
func (d *Driver) Free(p Pointer) error { return d.check("cuMemFree", d.memory.free.Call(uintptr(p))) }

// AllocHost reserves pinned host memory that cards and the host access at the same address.
func (d *Driver) AllocHost(size int) (p Pointer, err error) {
	const portable, mapped = 1, 2
	err = d.check("cuMemHostAlloc",
		d.memory.hostAlloc.Call(uintptr(unsafe.Pointer(&p)), uintptr(size), portable|mapped))
	return p, err
}

// FreeHost frees memory of AllocHost.
func (d *Driver) FreeHost(p Pointer) error {
	return d.check("cuMemFreeHost", d.memory.freeHost.Call(uintptr(p)))
}

// CopyIn copies size bytes of AllocHost's memory to the card's.
func (d *Driver) CopyIn(dst, src Pointer, size int, s Stream) error {
	return d.check("cuMemcpyHtoDAsync", d.memory.toDevice.Call(uintptr(dst), uintptr(src), uintptr(size), uintptr(s)))
}

// CopyOut copies size bytes of the card's memory to AllocHost's.
func (d *Driver) CopyOut(dst, src Pointer, size int, s Stream) error {
	return d.check("cuMemcpyDtoHAsync", d.memory.toHost.Call(uintptr(dst), uintptr(src), uintptr(size), uintptr(s)))
}

// CopyWithin copies size bytes between memory that the card can access, its own or AllocHost's.
func (d *Driver) CopyWithin(dst, src Pointer, size int, s Stream) error {
	return d.check("cuMemcpyAsync", d.memory.within.Call(uintptr(dst), uintptr(src), uintptr(size), uintptr(s)))
}

// Set fills size bytes with b.
func (d *Driver) Set(dst Pointer, b byte, size int, s Stream) error {
	return d.check("cuMemsetD8Async", d.memory.set.Call(uintptr(dst), uintptr(b), uintptr(size), uintptr(s)))
}
