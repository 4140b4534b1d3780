package checkpoint

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"path/filepath"
	"runtime"
)

// writeFile creates dir/name, calls fill to write it, syncs it, and returns its size and checksums.
func writeFile(fs filesystem, dir, name string, fill func(io.Writer) error) (fileEntry, error) {
	f, err := fs.Create(filepath.Join(dir, name))
	if err != nil {
		return fileEntry{}, err
	}
	buffered := bufio.NewWriterSize(f, 64<<10)
	w := &summer{w: buffered, sha: sha256.New()}
	err = fill(w)
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fileEntry{}, fmt.Errorf("%s at byte %d: %w", name, w.size, err)
	}
	return w.entry(name), nil
}

// writeBytes is writeFile for a small file.
func writeBytes(fs filesystem, dir, name string, text []byte) (fileEntry, error) {
	return writeFile(fs, dir, name, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// summer passes bytes on and computes the SHA-256 of all and the CRC-32C of every chunk.
type summer struct {
	w    io.Writer
	sha  hash.Hash
	crc  uint32 // of the chunk so far
	sums []checksum
	size int64
}

func (s *summer) Write(p []byte) (int, error) {
	const piece = 256 << 10 // small enough to stay in cache between the two sums
	for rest := p; len(rest) > 0; {
		runtime.Gosched() // training comes first: a piece waits for a free core, or 10 ms
		b := rest[:min(len(rest), piece, chunkBytes-int(s.size%chunkBytes))]
		s.sha.Write(b)
		s.crc = crc32.Update(s.crc, castagnoli, b)
		if _, err := s.w.Write(b); err != nil {
			return len(p) - len(rest), err
		}
		s.size += int64(len(b))
		if s.size%chunkBytes == 0 {
			s.sums, s.crc = append(s.sums, checksum(s.crc)), 0
		}
		rest = rest[len(b):]
	}
	return len(p), nil
}

func (s *summer) entry(name string) fileEntry {
	sums := append([]checksum{}, s.sums...)
	if s.size%chunkBytes != 0 {
		sums = append(sums, checksum(s.crc))
	}
	return fileEntry{Name: name, Size: s.size, SHA256: hex.EncodeToString(s.sha.Sum(nil)), CRC32C: sums}
}
