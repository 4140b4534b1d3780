//go:build unix

package tensor

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func ptr(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

func mapMemory(size int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	adviseHuge(mem)
	return mem, nil
}

func unmapMemory(mem []byte) error { return unix.Munmap(mem) }
