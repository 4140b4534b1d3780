package machine

import (
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

var (
	kernel32             = windows.NewLazySystemDLL("kernel32.dll")
	globalMemoryStatusEx = kernel32.NewProc("GlobalMemoryStatusEx")
	getProcessMemoryInfo = kernel32.NewProc("K32GetProcessMemoryInfo")
)

// Cores is not supported on this system.
func Cores() string { return "" }

// ReadMemory calls GlobalMemoryStatusEx.
func ReadMemory() Memory {
	var s struct { // MEMORYSTATUSEX
		length, load                                         uint32
		total, available, pageTotal, pageFree, virtual, free uint64
		extended                                             uint64
	}
	s.length = uint32(unsafe.Sizeof(s))
	if ok, _, _ := globalMemoryStatusEx.Call(uintptr(unsafe.Pointer(&s))); ok == 0 {
		return Memory{}
	}
	return Memory{Total: int64(s.total), Available: int64(s.available)}
}

// CPUName returns the processor's name, "" if unknown.
func CPUName() string {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `HARDWARE\DESCRIPTION\System\CentralProcessor\0`,
		registry.QUERY_VALUE)
	if err != nil {
		return ""
	}
	defer key.Close()
	name, _, _ := key.GetStringValue("ProcessorNameString")
	return strings.TrimSpace(name)
}

// Resident returns the memory in use by the process, and its peak, in bytes.
func Resident() (now, peak int64) {
	var c struct { // PROCESS_MEMORY_COUNTERS
		size, faults                                                 uint32
		peakSet, set, peakPaged, paged, peakNonPaged, nonPaged, file uintptr
		peakFile                                                     uintptr
	}
	c.size = uint32(unsafe.Sizeof(c))
	if ok, _, _ := getProcessMemoryInfo.Call(uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&c)),
		uintptr(c.size)); ok == 0 {
		return 0, 0
	}
	return int64(c.set), int64(c.peakSet)
}
