//go:build !linux && !windows

package machine

// ReadMemory is not supported on this system.
func ReadMemory() Memory { return Memory{} }

// CPUName is not supported on this system.
func CPUName() string { return "" }

// Cores is not supported on this system.
func Cores() string { return "" }

// Resident is not supported on this system.
func Resident() (now, peak int64) { return 0, 0 }
