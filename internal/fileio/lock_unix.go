//go:build unix

package fileio

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Lock locks an open file or directory until it is closed or the process ends. It returns ErrLocked if another process
// holds the lock. On file systems without locks it always succeeds.
func Lock(f *os.File) error {
	if errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return nil
}

// Locked reports whether another process holds the lock of an open file. Processes that ask at the same time do not
// see each other, but none can take the lock until they close the file. On file systems without locks it is false.
func Locked(f *os.File) bool {
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
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
