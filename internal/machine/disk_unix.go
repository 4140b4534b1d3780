//go:build linux || darwin || freebsd

package machine

import "golang.org/x/sys/unix"

// FreeDisk is the bytes that an ordinary user may still write beside path, 0 if unknown.
func FreeDisk(path string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return 0
	}
	return int64(s.Bavail) * int64(s.Bsize)
}
