package fileio

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Create writes a new file, which appears whole: under another name first, then as a link. If the file exists, the
// error is fs.ErrExist.
func Create(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if _, err = f.Write(text); err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Lstat(path); err == nil { // a file system without links: between two ranks the last one wins
		return fs.ErrExist
	}
	return os.Rename(f.Name(), path)
}
