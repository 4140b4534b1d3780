package curate

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"anneal/corpus"
)

// shard is a file of JSON lines under zstd that appears under its name only when it is whole and on disk.
type shard struct {
	dir, name string
	f         *os.File
	z         *zstd.Encoder
}

func newShard(dir, name string) (*shard, error) {
	f, err := os.CreateTemp(filepath.Join(dir, filepath.Dir(name)), "."+filepath.Base(name)+".tmp-*")
	if err != nil {
		return nil, err
	}
	f.Chmod(0o644) // as far as the file system has modes
	z, err := zstd.NewWriter(f, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20))
	return &shard{dir: dir, name: name, f: f, z: z}, err
}

func (s *shard) write(line []byte) error {
	_, err := s.z.Write(line)
	return err
}

// commit makes the file durable and visible and returns its size.
func (s *shard) commit() (size int64, err error) {
	if err := s.z.Close(); err != nil {
		return 0, err
	}
	if size, err = s.f.Seek(0, io.SeekEnd); err != nil {
		return 0, err
	}
	if err := s.f.Sync(); err != nil {
		return 0, err
	}
	temp := s.f.Name()
	if err := s.f.Close(); err != nil {
		return 0, err
	}
	s.f = nil
	path := filepath.Join(s.dir, filepath.FromSlash(s.name))
	if err := os.Rename(temp, path); err != nil {
		return 0, err
	}
	if d, err := os.Open(filepath.Dir(path)); err == nil { // where directories cannot be synced the rename has to do
		d.Sync()
		d.Close()
	}
	return size, nil
}

// abandon removes what was not committed.
func (s *shard) abandon() {
	if s.f != nil {
		s.z.Close()
		s.f.Close()
		os.Remove(s.f.Name())
	}
}

func appendDocument(b []byte, d *Doc) []byte {
	b = appendKey(append(b, '{'), d)
	b = append(b, `,"text":`...)
	b = appendString(b, d.Text)
	return append(b, "}\n"...)
}

func appendKey(b []byte, d *Doc) []byte {
	b = appendString(append(b, `"source":`...), []byte(d.Source))
	b = append(b, `,"key":[`...)
	for i, n := range []int{d.Key.Source, d.Key.Split, d.Key.Row} {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return append(b, ']')
}

func appendSignals(b []byte, d *Doc, v Verdict, size int) []byte {
	b = appendKey(append(b, '{'), d)
	b = strconv.AppendInt(append(b, `,"bytes":`...), int64(size), 10)
	b = appendString(append(b, `,"dropped_by":`...), []byte(v.Rule))
	b = append(b, `,"signals":{`...)
	for i, s := range d.Signals {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendString(b, []byte(s.Name)), ':')
		if math.IsInf(s.Value, 0) || math.IsNaN(s.Value) {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendFloat(b, s.Value, 'g', -1, 64)
		}
	}
	return append(b, "}}\n"...)
}

// appendString appends a JSON string; bytes that are not UTF-8 become U+FFFD, one each.
func appendString(b, s []byte) []byte {
	if !utf8.Valid(s) {
		s = []byte(string([]rune(string(s))))
	}
	return corpus.AppendString(b, s)
}
