package checkpoint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"anneal/internal/fileio"
)

// LockedError means that another process writes checkpoints to the same directory.
type LockedError struct {
	Path string // of the lock file
	Holder
}

// errHeld is returned by tryLock if another process holds the lock.
var errHeld = errors.New("locked by another process")

// Holder is the description, in the lock file, of the process that holds the lock.
type Holder struct {
	PID  int    `json:"pid"`
	Host string `json:"host"`
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("%s is locked by process %d on %s\n  stop that run first, or write to another directory",
		e.Path, e.PID, e.Host)
}

// lock takes the lock of root. The kernel releases it however the process ends, so a lock file that names a holder
// while the lock is free is a leftover: the lock is taken over with a notice.
func lock(root string, log *slog.Logger) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(root, ".lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() { // reading a pipe would wait for a writer
		f.Close()
		return nil, &fs.PathError{Op: "lock", Path: f.Name(), Err: cmp.Or(err, fileio.ErrNotRegular)}
	}
	var last Holder
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	if err == nil && len(text) > 0 {
		// An incompletely written lock file has no usable holder.
		_ = json.Unmarshal(text, &last)
	}
	switch err := tryLockFor(f, lockPatience); {
	case errors.Is(err, errHeld):
		f.Close()
		return nil, &LockedError{f.Name(), last}
	case err != nil:
		log.Warn("the file system does not support locks; make sure that only one process writes here",
			"dir", root, "error", err)
	case last.PID != 0:
		log.Debug("taking over the lock of a process that ended without releasing it",
			"pid", last.PID, "host", last.Host)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	if err := writeHolder(f, &Holder{os.Getpid(), host}); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// lockPatience is far longer than `anneal ls` and `anneal watch` take to see whether a lock is held.
const lockPatience = 100 * time.Millisecond

// tryLockFor is tryLock that waits for a lock that is soon free.
func tryLockFor(f *os.File, patience time.Duration) error {
	for begun := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		if err := tryLock(f); !errors.Is(err, errHeld) || time.Since(begun) > patience {
			return err
		}
	}
}

// keepLock makes sure that the lock still excludes other processes. It no longer does if its file was deleted; then
// keepLock takes the lock again, unless another process was faster.
func (s *Store) keepLock() error {
	held, err := s.lock.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Stat(s.lock.Name()); err == nil && os.SameFile(held, now) {
		return nil
	}
	again, err := lock(s.root, s.opt.Log)
	if err != nil {
		return err
	}
	s.opt.Log.Warn("the lock file was deleted and is created again: do not delete it, "+
		"or two processes may write here", "path", again.Name())
	s.lock.Close()
	s.lock = again
	return nil
}

// Lock locks a directory that only one process at a time may write to, with the lock of a Store, until unlock is
// called. It returns a *LockedError if another process holds the lock.
func Lock(dir string) (unlock func() error, err error) {
	f, err := lock(dir, slog.Default())
	if err != nil {
		return nil, err
	}
	return func() error { return letGo(f) }, nil
}

// letGo empties the lock file and releases the lock. The file stays, because removing it would race with a process
// that has opened it.
func letGo(f *os.File) error { return errors.Join(writeHolder(f, nil), f.Close()) }

func writeHolder(f *os.File, h *Holder) error {
	if err := f.Truncate(0); err != nil || h == nil {
		return err
	}
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(text, 0)
	return err
}
