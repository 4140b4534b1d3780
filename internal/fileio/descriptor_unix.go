//go:build unix

package fileio

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// duplicate opens an open file of this process again, to be closed alone.
func duplicate(fd int, path string) (*os.File, error) {
	again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(again), path), nil
}
