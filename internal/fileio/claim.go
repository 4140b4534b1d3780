package fileio

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrLocked means that another process is working on a file or directory.
var ErrLocked = errors.New("another process is working here")

// Claim makes a directory and locks it for this process until release is called, so that two processes do not write
// into each other's files.
func Claim(dir string) (release func(), err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	release, err = hold(dir)
	if errors.Is(err, ErrLocked) {
		err = fmt.Errorf("%s: %w\n  wait for it, or choose another directory", dir, err)
	}
	return release, err
}

// stage makes the hidden directory beside out that Dir fills, and locks it for this process. It removes an empty out
// at once, so that an out that cannot be replaced, such as a mount point, fails before the work. Release removes the
// rest of the hidden directory.
func stage(out string) (tmp string, release func(), err error) {
	whole, err := filepath.Abs(out)
	if err != nil {
		return "", nil, err
	}
	if cwd, _ := os.Getwd(); cwd == whole {
		err = errors.New("it is the current directory")
	} else if err = os.Remove(whole); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("%s cannot be replaced by the output: %v\n  name a directory in it, such as %s",
			out, Cause(err), filepath.Join(out, "out"))
	}
	tmp = filepath.Join(filepath.Dir(whole), "."+filepath.Base(whole)+".partial")
	free, err := Claim(tmp)
	if err != nil {
		return "", nil, err
	}
	entries, err := os.ReadDir(tmp)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(tmp, e.Name())))
	}
	if err != nil {
		free()
		return "", nil, err
	}
	return tmp, func() {
		os.RemoveAll(tmp)
		free()
	}, nil
}
