package corpus

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync"

	"anneal/internal/fileio"

	"github.com/klauspost/compress/s2"

	"github.com/klauspost/compress/zstd"
)

// LineFile is a zstd file of lines that appears under its name only when it is complete and on disk. The same lines
// give the same bytes. It is written in frames that end with a line and state their length, so that Reader.Splits can
// cut it.
type LineFile struct {
	path   string
	f      *os.File
	quick  bool
	lines  []byte // of the frame to come
	packed []byte
	sum    hash.Hash
}

// frameBytes is the approximate size of a frame's content. Larger frames hardly compress better.
const frameBytes = 2 << 20

// encoders are expensive to make: 1 MiB of tables and as much of window. Each uses one goroutine, so that its output
// is always the same.
var encoders = sync.Pool{New: func() any {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(1<<20), zstd.WithZeroFrames(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return z
}}

// quickEncoders take a third of the time; their output is 1.5 times as large.
var quickEncoders = sync.Pool{New: func() any { return s2.NewWriter(nil, s2.WriterConcurrency(1)) }}

// CreateLines begins the file at path, whose directory must exist. If path ends in .s2 it is compressed with S2
// instead, for temporary files that only this program reads.
func CreateLines(path string) (*LineFile, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return nil, err
	}
	f.Chmod(0o644) // as far as the file system has modes
	return &LineFile{path: path, f: f, quick: filepath.Ext(path) == ".s2", sum: sha256.New()}, nil
}

// Write adds lines with their ends; a call may hold part of a line or many.
func (l *LineFile) Write(b []byte) (int, error) {
	l.lines = append(l.lines, b...)
	for len(l.lines) > frameBytes {
		i := bytes.IndexByte(l.lines[frameBytes:], '\n')
		if i < 0 {
			break
		}
		if err := l.frame(frameBytes + i + 1); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// frame compresses and writes the first n bytes of the buffer.
func (l *LineFile) frame(n int) error {
	if l.quick {
		z, out := quickEncoders.Get().(*s2.Writer), bytes.NewBuffer(l.packed[:0])
		z.Reset(out)
		_, err := z.Write(l.lines[:n])
		if err := errors.Join(err, z.Close()); err != nil {
			return err
		}
		l.packed = out.Bytes()
		quickEncoders.Put(z)
	} else {
		z := encoders.Get().(*zstd.Encoder)
		l.packed = z.EncodeAll(l.lines[:n], l.packed[:0])
		encoders.Put(z)
	}
	l.lines = l.lines[:copy(l.lines, l.lines[n:])]
	l.sum.Write(l.packed)
	_, err := l.f.Write(l.packed)
	return err
}

// Commit makes the file durable and visible. It returns its size and SHA-256.
func (l *LineFile) Commit() (size int64, sum string, err error) {
	defer l.Abandon()
	if len(l.lines) > 0 || l.packed == nil { // no lines: an empty frame, because an empty file is damaged
		if err := l.frame(len(l.lines)); err != nil {
			return 0, "", err
		}
	}
	if size, err = l.f.Seek(0, io.SeekCurrent); err != nil {
		return 0, "", err
	}
	if err := fileio.Put(l.f, l.path); err != nil {
		return 0, "", err
	}
	l.f = nil
	return size, hex.EncodeToString(l.sum.Sum(nil)), nil
}

// Abandon removes the file unless it was committed.
func (l *LineFile) Abandon() {
	if l.f != nil {
		l.f.Close()
		os.Remove(l.f.Name())
		l.f = nil
	}
}
