//go:build linux || darwin || freebsd

package machine

import (
	"os"

	"golang.org/x/sys/unix"
)

// FreeDisk returns the bytes available to an ordinary user on the file system of path.
func FreeDisk(path string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
