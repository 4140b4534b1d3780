//go:build !linux && !windows

package machine

// ReadMemory is not known on this system.
func ReadMemory() Memory { return Memory{} }

// CPUName is not known on this system.
func CPUName() string { return "" }

// Resident is not known on this system.
func Resident() (now, peak int64) { return 0, 0 }
