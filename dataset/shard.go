package dataset

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync/atomic"

	"anneal/internal/fileio"
)

// shard reads one token shard. Several goroutines may call its methods, each with its own scratch.
type shard struct {
	f    *os.File
	path string
	h    header
	l    layout
	head uint32          // checksum of the header
	crcs []byte          // checksum table
	good []atomic.Uint32 // one bit for each verified block

	// for each document, if the shard has prompts: its end, and the number of tokens in its prompt
	ends, prompts []uint64
}

// scratch holds the buffers of one reading goroutine. The block that was checked last stays: small data sets have only
// one, and a system call costs more than to read a short row from it.
type scratch struct {
	raw, block []byte
	of         *shard // whose block it is; nil for none
	number     int64
}

// holds returns bytes start … end of the checksummed part of a shard, if they are in the block that was checked last.
func (s *scratch) holds(of *shard, start, end int64) ([]byte, bool) {
	at := s.number * blockSize
	if s.of != of || start < at || end > at+int64(len(s.block)) {
		return nil, false
	}
	return s.block[start-at : end-at], true
}

func (s *scratch) bytes(n int) []byte {
	if cap(s.raw) < n {
		s.raw = make([]byte, n)
	}
	return s.raw[:n]
}

func openShard(path string) (*shard, error) {
	f, err := fileio.OpenRegular(path)
	if err != nil {
		return nil, shardError(path, fileio.Cause(err))
	}
	s := &shard{f: f, path: path}
	if err := s.open(); err != nil {
		f.Close()
		return nil, shardError(path, err)
	}
	return s, nil
}

// shardError returns an error that names the shard, the reason, and the remedy.
func shardError(path string, err error) error {
	return fmt.Errorf("shard %s: %w\n  restore the file from a copy, or rebuild the data with `anneal data build`",
		path, err)
}

func (s *shard) open() error {
	info, err := s.f.Stat()
	if err != nil {
		return err
	}
	head := make([]byte, headerSize)
	if err := s.readAt(head[:min(headerSize, info.Size())], 0); err != nil {
		return err
	}
	if s.h, s.l, err = decodeHeader(head, info.Size()); err != nil {
		return err
	}
	s.head = binary.LittleEndian.Uint32(head[headerSize-4:])
	s.crcs = make([]byte, s.l.size-s.l.table)
	if err := s.readAt(s.crcs, s.l.table); err != nil {
		return err
	}
	if got := crc32.Checksum(s.crcs, castagnoli); got != s.h.tableCRC {
		return fmt.Errorf("checksum table at byte %d: checksum %08x, recorded %08x", s.l.table, got, s.h.tableCRC)
	}
	s.good = make([]atomic.Uint32, (s.blocks()+31)/32)
	if s.h.prompts {
		return s.readPrompts()
	}
	return nil
}

func (s *shard) blocks() int { return len(s.crcs) / 4 }

func (s *shard) readAt(b []byte, off int64) error {
	n, err := s.f.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == io.EOF {
		return fmt.Errorf("the file ends before byte %d: it was truncated while it was open", off+int64(len(b)))
	}
	return fileio.Cause(err)
}

// read fills dst with the tokens from position pos on, which must be in range.
func (s *shard) read(dst []uint32, pos uint64, buf *scratch) error {
	if err := s.readTokens(dst, pos, buf); err != nil {
		return shardError(s.path, err)
	}
	return nil
}

func (s *shard) readTokens(dst []uint32, pos uint64, buf *scratch) error {
	width := int(s.h.tokenBytes)
	start := int64(pos) * int64(width)
	end := start + int64(len(dst)*width)
	if err := s.checkOnce(start, end, buf); err != nil {
		return err
	}
	if buf.of == nil && s.blocks() == 1 { // opening a shard may have checked it elsewhere
		if err := s.check(0, buf); err != nil {
			return err
		}
	}
	raw, ok := buf.holds(s, start, end)
	if !ok {
		raw = buf.bytes(len(dst) * width)
		if err := s.readAt(raw, headerSize+start); err != nil {
			return err
		}
	}
	return s.widen(dst, raw, pos)
}

// checkOnce verifies the unverified blocks of bytes [start, end) of the checksummed part.
func (s *shard) checkOnce(start, end int64, buf *scratch) error {
	for b := start / blockSize; b*blockSize < end; b++ {
		if s.good[b/32].Load()&(1<<(b%32)) == 0 {
			if err := s.check(int(b), buf); err != nil {
				return err
			}
			s.good[b/32].Or(1 << (b % 32))
		}
	}
	return nil
}

// widen converts raw tokens to ids, which must be in the vocabulary.
func (s *shard) widen(dst []uint32, raw []byte, pos uint64) error {
	top := uint32(0)
	if s.h.tokenBytes == 2 {
		for i := range dst {
			dst[i] = uint32(binary.LittleEndian.Uint16(raw[2*i:]))
			top = max(top, dst[i])
		}
	} else {
		for i := range dst {
			dst[i] = binary.LittleEndian.Uint32(raw[4*i:])
			top = max(top, dst[i])
		}
	}
	if vocab := uint32(s.h.tokenizer.Vocab); top >= vocab {
		for i, t := range dst {
			if t >= vocab {
				return fmt.Errorf("token %d has id %d, but the vocabulary has %d entries", pos+uint64(i), t, vocab)
			}
		}
	}
	return nil
}

// check reads a block and compares it with its checksum.
func (s *shard) check(b int, buf *scratch) error {
	start := headerSize + int64(b)*blockSize
	n := min(blockSize, s.l.table-start)
	if int64(cap(buf.block)) < n {
		buf.block = make([]byte, n)
	}
	block := buf.block[:n]
	buf.block, buf.of = block, nil
	if err := s.readAt(block, start); err != nil {
		return err
	}
	if got, want := crc32.Checksum(block, castagnoli), binary.LittleEndian.Uint32(s.crcs[4*b:]); got != want {
		return fmt.Errorf("block %d (bytes %d–%d): checksum %08x, recorded %08x: the file is damaged",
			b, start, start+n, got, want)
	}
	buf.of, buf.number = s, int64(b)
	return nil
}

// verify checks every byte of the shard: checksums, token ids, and that the document index and the EOT tokens agree.
func (s *shard) verify(buf *scratch) error {
	if err := s.verifyAll(buf); err != nil {
		return shardError(s.path, err)
	}
	return nil
}

func (s *shard) verifyAll(buf *scratch) error {
	for b := range s.blocks() {
		if err := s.check(b, buf); err != nil {
			return err
		}
	}
	const chunk = 1 << 16
	tokens := make([]uint32, min(chunk, s.h.tokens))
	index := docIndex{s: s}
	next := uint64(0) // start of the next document
	for pos := uint64(0); pos < s.h.tokens; pos += chunk {
		part := tokens[:min(chunk, s.h.tokens-pos)]
		if err := s.readTokens(part, pos, buf); err != nil {
			return err
		}
		for i, t := range part {
			at := pos + uint64(i)
			if (t == s.h.tokenizer.EOT) != (at == next) {
				return fmt.Errorf("token %d: the document index and the EOT tokens disagree", at)
			}
			if at == next {
				end, _, err := index.next()
				if err != nil {
					return err
				}
				if end <= at || end > s.h.tokens {
					return fmt.Errorf("document index: the document that starts at token %d ends at %d of %d",
						at, end, s.h.tokens)
				}
				next = end
			}
		}
	}
	if index.read != s.h.docs {
		return fmt.Errorf("document index: %d entries, but the tokens hold %d documents", s.h.docs, index.read)
	}
	return nil
}
