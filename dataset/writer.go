package dataset

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"

	"anneal/internal/fileio"
)

// temporary is the suffix of incomplete files.
const temporary = ".tmp"

// shardWriter appends documents to one shard. finish gives the file its name; before that, close removes it.
type shardWriter struct {
	f     *os.File
	path  string
	h     header
	ends  []byte // document index
	block []byte // unwritten part of the current block
	crcs  []byte // checksum table
}

func createShard(path string, t Tokenizer, prompts bool) (*shardWriter, error) {
	f, err := os.Create(path + temporary)
	if err != nil {
		return nil, err
	}
	w := &shardWriter{
		f: f, path: path, h: header{tokenBytes: t.tokenBytes(), tokenizer: t, prompts: prompts},
		block: make([]byte, 0, blockSize),
	}
	if _, err := f.Write(make([]byte, headerSize)); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// add appends a document: EOT, then its tokens.
func (w *shardWriter) add(d document) error {
	w.h.tokens += uint64(len(d.tokens)) + 1
	w.h.docs++
	w.h.textBytes += uint64(d.textBytes)
	w.ends = binary.LittleEndian.AppendUint64(w.ends, w.h.tokens)
	if w.h.prompts {
		w.ends = binary.LittleEndian.AppendUint64(w.ends, uint64(d.prompt))
		w.h.promptTokens += uint64(d.prompt)
	}
	if err := w.append([]uint32{w.h.tokenizer.EOT}); err != nil {
		return err
	}
	return w.append(d.tokens)
}

// append writes tokens. A block is a multiple of four bytes, so a token never spans two of them.
func (w *shardWriter) append(tokens []uint32) error {
	width := int(w.h.tokenBytes)
	for len(tokens) > 0 {
		at := len(w.block)
		n := min(len(tokens), (blockSize-at)/width)
		w.block = w.block[:at+n*width]
		out := w.block[at:]
		if width == 2 {
			for i, t := range tokens[:n] {
				binary.LittleEndian.PutUint16(out[2*i:], uint16(t))
			}
		} else {
			for i, t := range tokens[:n] {
				binary.LittleEndian.PutUint32(out[4*i:], t)
			}
		}
		if len(w.block) == blockSize {
			if err := w.flush(); err != nil {
				return err
			}
		}
		tokens = tokens[n:]
	}
	return nil
}

func (w *shardWriter) flush() error {
	if len(w.block) == 0 {
		return nil
	}
	w.crcs = binary.LittleEndian.AppendUint32(w.crcs, crc32.Checksum(w.block, castagnoli))
	_, err := w.f.Write(w.block)
	w.block = w.block[:0]
	return err
}

func (w *shardWriter) write(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), blockSize-len(w.block))
		w.block = append(w.block, b[:n]...)
		b = b[n:]
		if len(w.block) == blockSize {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish completes the file, makes it durable and gives it its name.
func (w *shardWriter) finish() (ShardInfo, error) {
	payload := headerSize + w.h.tokens*uint64(w.h.tokenBytes)
	err := w.write(make([]byte, align64(payload)-payload))
	if err == nil {
		err = w.write(w.ends)
	}
	if err == nil {
		err = w.flush()
	}
	if err == nil {
		_, err = w.f.Write(w.crcs)
	}
	w.h.tableCRC = crc32.Checksum(w.crcs, castagnoli)
	head := w.h.encode()
	if err == nil {
		_, err = w.f.WriteAt(head, 0)
	}
	if err == nil {
		err = fileio.Put(w.f, w.path)
	}
	if err != nil {
		w.close()
		return ShardInfo{}, err
	}
	info := ShardInfo{
		Path: filepath.ToSlash(filepath.Join(filepath.Base(filepath.Dir(w.path)), filepath.Base(w.path))),
		Counts: Counts{
			Documents: w.h.docs, Tokens: w.h.tokens, TextBytes: w.h.textBytes, PromptTokens: w.h.promptTokens,
		},
		Header: binary.LittleEndian.Uint32(head[headerSize-4:]),
	}
	return info, nil
}

// close drops the unfinished file.
func (w *shardWriter) close() {
	w.f.Close()
	os.Remove(w.path + temporary)
}
