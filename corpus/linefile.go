package corpus

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// LineFile is a file of lines under zstd that appears under its name only when it is whole and on disk. Its bytes are a
// function of the lines.
type LineFile struct {
	path string
	f    *os.File
	z    *zstd.Encoder
	buf  *bufio.Writer
	sum  hash.Hash
}

// encoders are expensive to make: 1 MiB of tables and as much of window. One goroutine each, for the same bytes always.
var encoders = sync.Pool{New: func() any {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
	if err != nil {
		panic(err) // the options are constants
	}
	return z
}}

// CreateLines begins the file at path, whose directory must exist.
func CreateLines(path string) (*LineFile, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return nil, err
	}
	f.Chmod(0o644) // as far as the file system has modes
	l := &LineFile{path: path, f: f, z: encoders.Get().(*zstd.Encoder), sum: sha256.New()}
	l.z.Reset(io.MultiWriter(f, l.sum))
	l.buf = bufio.NewWriterSize(l.z, 1<<16)
	return l, nil
}

// Write adds bytes: lines, with their ends.
func (l *LineFile) Write(lines []byte) (int, error) { return l.buf.Write(lines) }

// Commit makes the file durable and visible. It returns its size and SHA-256.
func (l *LineFile) Commit() (size int64, sum string, err error) {
	defer l.Abandon()
	if err := l.buf.Flush(); err != nil {
		return 0, "", err
	}
	if err := l.z.Close(); err != nil {
		return 0, "", err
	}
	if size, err = l.f.Seek(0, io.SeekCurrent); err != nil {
		return 0, "", err
	}
	if err := l.f.Sync(); err != nil {
		return 0, "", err
	}
	temp := l.f.Name()
	if err := l.f.Close(); err != nil {
		return 0, "", err
	}
	if err := os.Rename(temp, l.path); err != nil {
		return 0, "", err
	}
	l.f = nil
	l.release()
	syncDir(filepath.Dir(l.path))
	return size, hex.EncodeToString(l.sum.Sum(nil)), nil
}

// Abandon removes what was not committed; after Commit it does nothing.
func (l *LineFile) Abandon() {
	if l.f != nil {
		l.f.Close()
		os.Remove(l.f.Name())
		l.f = nil
		l.release()
	}
}

func (l *LineFile) release() {
	l.z.Reset(nil)
	encoders.Put(l.z)
}

// syncDir makes renames in a directory durable; where that cannot be done they have to do as they are.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
}
