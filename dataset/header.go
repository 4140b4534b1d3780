package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

const (
	shardMagic   = "\x93ANNEAL\n"
	shardVersion = 1 // 2 with prompts
	headerSize   = 4096
	blockSize    = 1 << 20 // bytes under one checksum
	maxVocab     = math.MaxInt32
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header holds the independent fields of a shard's header. The others follow from these; see layout.
type header struct {
	tokenBytes uint32 // 2 or 4
	tokenizer  Tokenizer
	tokens     uint64
	docs       uint64
	textBytes  uint64
	tableCRC   uint32

	prompts      bool   // the document index gives the number of prompt tokens of each document
	promptTokens uint64 // in all
}

// version returns the version of the file.
func (h *header) version() uint32 {
	if h.prompts {
		return shardVersion + 1
	}
	return shardVersion
}

// entry returns the size of an entry of the document index.
func (h *header) entry() uint64 { return 8 * uint64(h.version()) }

// layout holds the offsets of the parts of a shard.
type layout struct{ index, table, size int64 }

func align64(n uint64) uint64 { return (n + 63) &^ 63 }

// layout returns an error if the counts do not fit in a file of maxSize bytes.
func (h *header) layout(maxSize int64) (layout, error) {
	limit := uint64(maxSize)
	if h.tokens > limit/uint64(h.tokenBytes) || h.docs > limit/h.entry() {
		return layout{}, fmt.Errorf("header: %d tokens and %d documents do not fit in a file of %d bytes",
			h.tokens, h.docs, maxSize)
	}
	index := align64(headerSize + h.tokens*uint64(h.tokenBytes))
	table := index + h.entry()*h.docs
	blocks := (table - headerSize + blockSize - 1) / blockSize
	return layout{index: int64(index), table: int64(table), size: int64(table + 4*blocks)}, nil
}

// encode returns the header as it is in the file.
func (h *header) encode() []byte {
	b := make([]byte, headerSize)
	l, _ := h.layout(math.MaxInt64) // cannot fail: the writer has written that much
	copy(b, shardMagic)
	le := binary.LittleEndian
	le.PutUint32(b[8:], h.version())
	le.PutUint32(b[12:], h.tokenBytes)
	le.PutUint64(b[16:], uint64(h.tokenizer.Vocab))
	le.PutUint64(b[24:], uint64(h.tokenizer.EOT))
	copy(b[32:64], h.tokenizer.SHA256[:])
	le.PutUint64(b[64:], h.tokens)
	le.PutUint64(b[72:], h.docs)
	le.PutUint64(b[80:], h.textBytes)
	le.PutUint64(b[88:], headerSize)
	le.PutUint64(b[96:], uint64(l.index))
	le.PutUint64(b[104:], uint64(l.table))
	le.PutUint64(b[112:], uint64(l.size))
	le.PutUint32(b[120:], blockSize)
	le.PutUint32(b[124:], h.tableCRC)
	le.PutUint64(b[128:], h.promptTokens)
	le.PutUint32(b[headerSize-4:], crc32.Checksum(b[:headerSize-4], castagnoli))
	return b
}

// decodeHeader parses and checks the header b of a file of size bytes. For given counts it accepts exactly the output
// of encode.
func decodeHeader(b []byte, size int64) (header, layout, error) {
	var h header
	if size < headerSize {
		return h, layout{}, fmt.Errorf("a file of %d bytes is too short for a token shard (the header alone has %d)",
			size, headerSize)
	}
	if string(b[:8]) != shardMagic {
		return h, layout{}, fmt.Errorf("not a token shard: it starts with % x", b[:8])
	}
	le := binary.LittleEndian
	switch v := le.Uint32(b[8:]); v {
	case shardVersion:
	case shardVersion + 1:
		h.prompts = true
	default:
		return h, layout{}, fmt.Errorf("shard version %d; this version of anneal reads versions %d and %d",
			v, shardVersion, shardVersion+1)
	}
	if got, want := crc32.Checksum(b[:headerSize-4], castagnoli), le.Uint32(b[headerSize-4:]); got != want {
		return h, layout{}, fmt.Errorf("header: checksum %08x, recorded %08x", got, want)
	}
	h.tokenBytes = le.Uint32(b[12:])
	if h.tokenBytes != 2 && h.tokenBytes != 4 {
		return h, layout{}, fmt.Errorf("header: %d bytes per token, want 2 or 4", h.tokenBytes)
	}
	vocab, eot := le.Uint64(b[16:]), le.Uint64(b[24:])
	if vocab > maxVocab || eot >= vocab {
		return h, layout{}, fmt.Errorf("header: vocabulary size %d with EOT id %d", vocab, eot)
	}
	h.tokenizer = Tokenizer{Vocab: int(vocab), EOT: uint32(eot)}
	copy(h.tokenizer.SHA256[:], b[32:])
	if h.tokenBytes != h.tokenizer.tokenBytes() {
		return h, layout{}, fmt.Errorf("header: %d bytes per token with vocabulary size %d", h.tokenBytes, vocab)
	}
	h.tokens, h.docs, h.textBytes = le.Uint64(b[64:]), le.Uint64(b[72:]), le.Uint64(b[80:])
	h.tableCRC = le.Uint32(b[124:])
	if h.prompts {
		h.promptTokens = le.Uint64(b[128:])
	}
	l, err := h.layout(size)
	if err != nil {
		return h, l, err
	}
	if l.size != size {
		return h, l, fmt.Errorf("%d tokens and %d documents need a file of %d bytes, "+
			"but this one has %d: it is truncated or has been changed", h.tokens, h.docs, l.size, size)
	}
	if h.docs == 0 || h.tokens < h.docs {
		return h, l, fmt.Errorf("header: %d documents in %d tokens", h.docs, h.tokens)
	}
	if !bytes.Equal(b[:headerSize], h.encode()) {
		return h, l, errors.New("header: invalid offsets or reserved bytes for this version")
	}
	return h, l, nil
}
