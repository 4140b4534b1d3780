//go:build unix

package fileio

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Lock takes the lock of an open file or directory for as long as it is open, which the death of the process ends,
// too. It returns ErrLocked if another has it. On file systems without locks all have it.
func Lock(f *os.File) error {
	if errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return nil
}

// hold takes the lock of a directory until release is called.
func hold(dir string) (release func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := Lock(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
