package isa

import (
	"sync"
	"syscall"
)

// tilesGranted asks the kernel, once, for permission to use tiles, and reports the answer. Linux saves their 8 KiB
// only for processes with permission, which holds for all threads.
var tilesGranted = sync.OnceValue(func() bool {
	const requestPermission, tileData = 0x1023, 18 // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
	_, _, err := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return err == 0
})
