// Package fileio writes files for all other packages: a file or directory appears under its name only when it is
// complete and on disk, so neither a kill nor a power cut leaves half of one. It imports nothing of this module.
package fileio

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write writes the output of fill to path. It does not buffer: fill should, if it writes in small pieces. The writer
// that fill receives is an *os.File; fill can read back its output through the name of that file.
//
// A regular file appears, or is replaced, when it is complete and on disk, and keeps its permissions. Until then it is
// hidden beside path; a kill may leave it there. Symbolic links stay, and their target is made or replaced. Pipes,
// terminals and other character devices are written to directly, and so are this process's open files, /dev/stdout and
// /dev/fd/N; "-" is standard output. Directories, block devices and sockets are a *[TargetError].
func Write(path string, fill func(io.Writer) error) error {
	t, err := locate(path)
	if err != nil {
		return err
	}
	return t.write(fill)
}

func (t target) write(fill func(io.Writer) error) error {
	if t.stream {
		f, err := t.open()
		if err != nil {
			return err
		}
		err = fill(f)
		return cmp.Or(err, t.close(f))
	}
	f, err := os.CreateTemp(folder(t.path), "."+filepath.Base(t.path)+".tmp-*")
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if t.exists {
		mode = t.mode
	}
	f.Chmod(mode) // not every file system has modes
	if err = fill(f); err == nil {
		err = t.replace(f)
	}
	if err != nil {
		f.Close()
		os.Remove(f.Name())
	}
	return err
}

// Put makes f, which was opened to read and write beside path, durable, closes it and moves it to path, with the same
// rules for path as [Write]. If it fails, the file of f stays in its place.
func Put(f *os.File, path string) error {
	t, err := locate(path)
	if err != nil {
		return err
	}
	if t.path == path && !t.stream {
		return t.replace(f)
	}
	// The target is a stream, or lies elsewhere, perhaps on another disk.
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := t.write(func(w io.Writer) error { _, err := io.Copy(w, f); return err }); err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// replace makes f durable, closes it and gives it the name of the target, in whose directory it lies.
func (t target) replace(f *os.File) error {
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), t.path); err != nil {
		return err
	}
	SyncDir(folder(t.path))
	return nil
}

// Dir makes the directory out, which must be absent or empty. fill writes into .OUT.partial beside it; out appears when
// all files are complete and on disk. Remains of a killed run in .OUT.partial are removed first. While another process
// fills it, the error is ErrLocked.
func Dir(out string, fill func(tmp string) error) error {
	switch info, err := os.Stat(out); {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is a file\n  name a directory that does not exist", out)
	case err == nil:
		if entries, err := os.ReadDir(out); err != nil || len(entries) > 0 {
			return cmp.Or(err,
				fmt.Errorf("%s holds files already\n  name a directory that does not exist, or remove it first", out))
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	tmp, release, err := stage(out)
	if err != nil {
		return err
	}
	defer release()
	if err := fill(tmp); err != nil {
		return err
	}
	if err := filepath.WalkDir(tmp, syncEntry); err != nil {
		return err
	}
	if err := os.Rename(tmp, out); err != nil {
		return err
	}
	SyncDir(filepath.Dir(tmp))
	return nil
}

func syncEntry(path string, entry fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	if entry.IsDir() {
		SyncDir(path)
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0) // Windows does not sync a file that is open only for reading
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// SyncDir makes the names in a directory durable if the system supports it; elsewhere it has no effect.
func SyncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
}

// Cause returns the reason why a file operation failed, without the path, for messages that already name the path.
func Cause(err error) error {
	if p := new(fs.PathError); errors.As(err, &p) {
		return p.Err
	}
	return err
}
