package fileio

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Standard is the path that stands for standard output.
const Standard = "-"

// mostLinks is the largest length of a chain of symbolic links.
const mostLinks = 40

// TargetError means that a path names something that cannot be written as a file.
type TargetError struct{ Path, Kind string }

func (e *TargetError) Error() string {
	return fmt.Sprintf("cannot write to %s: it is %s\n  name a file, which is created or replaced, "+
		"a pipe or a terminal; %s is standard output", e.Path, e.Kind, Standard)
}

// target is the file or stream that a path names once its symbolic links are followed.
type target struct {
	path   string      // the file to create or replace, or the stream to write to
	exists bool        // there is a regular file at path
	mode   fs.FileMode // its permissions
	// a pipe, terminal or other character device, or an open file of this process: there is nothing to replace
	stream bool
	fd     int // descriptor of a stream that is an open file of this process, else -1
}

// locate follows path to its target: a regular file, a file that does not exist yet, or a stream. Anything else is an
// error.
func locate(path string) (target, error) {
	named := path
	for range mostLinks {
		if n, ok := descriptor(path); ok {
			return target{path: path, stream: true, fd: n}, nil
		}
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return target{path: path, fd: -1}, nil
		}
		if err != nil {
			return target{}, err
		}
		switch mode := info.Mode(); {
		case mode.IsRegular():
			return target{path: path, exists: true, mode: mode.Perm(), fd: -1}, nil
		case mode&fs.ModeSymlink != 0:
			if path, err = follow(path); err != nil {
				return target{}, err
			}
		case mode&(fs.ModeNamedPipe|fs.ModeCharDevice) != 0:
			return target{path: path, stream: true, fd: -1}, nil
		default:
			return target{}, &TargetError{named, kind(mode)}
		}
	}
	return target{}, &fs.PathError{Op: "write", Path: named, Err: syscall.ELOOP}
}

// folder returns the directory of a path as the system resolves it: filepath.Dir takes "link/.." for "." even if link
// leads elsewhere.
func folder(path string) string {
	dir, _ := filepath.Split(path)
	return cmp.Or(dir, ".")
}

// follow returns the path that a symbolic link names.
func follow(link string) (string, error) {
	to, err := os.Readlink(link)
	if err != nil || filepath.IsAbs(to) {
		return to, err
	}
	dir, _ := filepath.Split(link)
	return dir + to, nil
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a block device"
	}
	return "no regular file"
}

// Check finds out whether Write can write to path, without changing it. It does not open streams, because that could
// have an effect at the other end.
func Check(path string) error {
	t, err := locate(path)
	if err != nil || t.stream {
		return err
	}
	f, err := os.CreateTemp(folder(t.path), ".anneal-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Beside returns the directory in which Write makes the unfinished file for path; "" for a stream, which has none.
func Beside(path string) (string, error) {
	t, err := locate(path)
	if err != nil || t.stream {
		return "", err
	}
	return folder(t.path), nil
}

// IsStdout reports whether writing to path is writing to this process's standard output.
func IsStdout(path string) bool {
	t, err := locate(path)
	return err == nil && t.fd == 1
}

// open opens a stream.
func (t target) open() (*os.File, error) {
	switch t.fd {
	case -1:
		return os.OpenFile(t.path, os.O_WRONLY, 0)
	case 1:
		return os.Stdout, nil // never closed, because later writes need it
	}
	return duplicate(t.fd, t.path)
}

// close closes a stream that open opened.
func (t target) close(f *os.File) error {
	if t.fd == 1 {
		return nil
	}
	return f.Close()
}

// descriptor reads the names of an open file of this process: - and /dev/stdout, /dev/fd/N and /proc/self/fd/N.
// Opening such a path anew would begin at the start of a file to which output was redirected.
func descriptor(path string) (n int, ok bool) {
	if path == Standard {
		return 1, true
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return 0, false
	}
	switch path {
	case "/dev/stdin":
		return 0, true
	case "/dev/stdout":
		return 1, true
	case "/dev/stderr":
		return 2, true
	}
	for _, dir := range []string{
		"/dev/fd/", "/proc/self/fd/", "/proc/thread-self/fd/", fmt.Sprintf("/proc/%d/fd/", os.Getpid()),
	} {
		if name, found := strings.CutPrefix(path, dir); found {
			n, err := strconv.ParseUint(name, 10, 16)
			return int(n), err == nil
		}
	}
	return 0, false
}
