package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// reserve makes a file n bytes longer, with blocks of the disk where the file system allows it, so that no later write
// finds the disk full.
func reserve(f *os.File, from, n int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, from, n)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return f.Truncate(from + n)
	}
	return err
}
