//go:build unix

package fileio

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// openReading opens path without waiting, even if it is a pipe.
func openReading(path string) (*os.File, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		unix.SetNonblock(fd, false) // a regular file is read as any other
		return os.NewFile(uintptr(fd), path), nil
	}
}
