package checkpoint

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// tryLock takes the lock of an open file, or returns errHeld. Closing the file releases it. On Windows other processes
// cannot read a locked range, so the lock is on a byte far behind the content of the file.
func tryLock(f *os.File) error {
	at := windows.Overlapped{OffsetHigh: 1}
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return errHeld
	}
	return err
}

// SyncDir does nothing: NTFS keeps a journal of names, and a directory cannot be flushed.
func (disk) SyncDir(string) error { return nil }
