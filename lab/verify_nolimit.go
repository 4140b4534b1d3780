//go:build !linux

package lab

// limitMemory does nothing: only Linux can limit a running process.
func limitMemory(int, int64) error { return nil }
