//go:build !(linux || darwin || freebsd)

package machine

// FreeDisk is not known on this system.
func FreeDisk(string) int64 { return 0 }
