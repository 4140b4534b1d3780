//go:build !linux

package machine

// ReadMemory is not known on this system.
func ReadMemory() Memory { return Memory{} }

// CPUName is not known on this system.
func CPUName() string { return "" }
