//go:build unix

package fileio

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// duplicate returns a second descriptor of an open file of this process; closing it leaves the first open.
func duplicate(fd int, path string) (*os.File, error) {
	again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(again), path), nil
}
