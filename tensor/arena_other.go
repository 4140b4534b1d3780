//go:build !unix

package tensor

import "unsafe"

// Without mmap an arena is a pointer-free Go allocation, aligned by hand.
func mapMemory(size int) ([]byte, error) {
	mem := make([]byte, size+Align)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(mem)))) & (Align - 1)
	return mem[skip : skip+size : skip+size], nil
}

func unmapMemory([]byte) error { return nil }

func ptr(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }
