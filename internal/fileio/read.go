package fileio

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular means that a path to read is a pipe, a device or a socket.
var ErrNotRegular = errors.New("not a regular file")

// OpenRegular opens a file to read it. It follows symbolic links. Anything else than a regular file is an error at
// once: opening a pipe would wait for a writer, and a device may have no end.
func OpenRegular(path string) (*os.File, error) {
	// Check before opening, because opening a device can have effects.
	if err := checkRegular(os.Stat(path)); err != nil {
		return nil, named(path, err)
	}
	f, err := openReading(path)
	if err != nil {
		return nil, err
	}
	if err := checkRegular(f.Stat()); err != nil { // the name may belong to another file now
		f.Close()
		return nil, named(path, err)
	}
	return f, nil
}

func checkRegular(info fs.FileInfo, err error) error {
	switch {
	case err != nil || info.Mode().IsRegular():
		return err
	case info.IsDir():
		return syscall.EISDIR
	}
	return ErrNotRegular
}

// named returns an error of opening path.
func named(path string, err error) error {
	return &fs.PathError{Op: "open", Path: path, Err: Cause(err)}
}

// ReadSmall returns the content of a regular file of at most limit bytes. A larger one is a [TooLargeError] before it
// is read.
func ReadSmall(path string, limit int64) ([]byte, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := readSmall(f, limit)
	if err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: Cause(err)}
	}
	return text, nil
}

func readSmall(f *os.File, limit int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, TooLargeError(limit)
	}
	// A file of the system may hold more than its size says, and any file may grow.
	text := make([]byte, 0, info.Size()+1)
	for {
		n, err := f.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case int64(len(text)) > limit:
			return nil, TooLargeError(limit)
		case err == io.EOF:
			return text, nil
		case err != nil:
			return nil, err
		case len(text) == cap(text):
			text = append(text, 0)[:len(text)]
		}
	}
}

// TooLargeError means that a file has more bytes than its kind may have.
type TooLargeError int64

func (limit TooLargeError) Error() string {
	for _, u := range []struct {
		shift int
		name  string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n := int64(limit) >> u.shift; n > 0 && n<<u.shift == int64(limit) {
			return fmt.Sprintf("larger than %d %s", n, u.name)
		}
	}
	return fmt.Sprintf("larger than %d bytes", int64(limit))
}
