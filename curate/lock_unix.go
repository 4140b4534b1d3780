//go:build unix

package curate

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock keeps other processes from a journal until it is closed, also by the death of this one. Where the file system has no
// locks there is none: the output is then as good, and one of two such processes fails when the other ends.
func lock(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return ErrBusy
	}
	return nil
}
