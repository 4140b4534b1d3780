package tokenizer

import (
	"encoding/binary"
	"slices"
)

// Encoder encodes texts. It holds up to about 16 MiB of caches and belongs to one goroutine.
type Encoder struct {
	t      *Tokenizer
	split  splitter
	merge  merger
	words  wordCache
	pieces pieceCache
	ends   [512]int
}

// NewEncoder returns an encoder with empty caches, which grow with use.
func (t *Tokenizer) NewEncoder() *Encoder {
	return &Encoder{t: t, split: t.pattern.new(), merge: merger{t: t}, words: wordCache{lines: make([][2]entry, minLines)}}
}

// Encode appends the tokens of text to dst. No text yields a special token: "<|endoftext|>" is encoded like any other
// characters. text need not be valid UTF-8.
func (e *Encoder) Encode(dst []uint32, text []byte) []uint32 {
	e.split.reset(text)
	start := 0
	for {
		n := e.split.next(e.ends[:])
		if n == 0 {
			return dst
		}
		dst = e.encodePieces(dst, text, start, e.ends[:n])
		start = e.ends[n-1]
	}
}

// encodePieces appends the tokens of the pretokens that start at start and end at ends.
func (e *Encoder) encodePieces(dst []uint32, text []byte, start int, ends []int) []uint32 {
	dst = slices.Grow(dst, 4*len(ends))
	n := len(dst)
	room := dst[:cap(dst)]
	lines := e.words.lines
	for i, end := range ends {
		if size := end - start; size <= shortWord && start+16 <= len(text) {
			// What packWord and find do, by hand: this is most of the work, and calls would cost as much again.
			b, m := (*[16]byte)(text[start:]), &wordMasks[size&15]
			w := word{
				binary.LittleEndian.Uint64(b[:]) & m.lo,
				binary.LittleEndian.Uint64(b[8:])&m.hi | uint64(size)<<56,
			}
			line := &lines[w.hash()&uint64(len(lines)-1)]
			hit := &line[0]
			if !hit.holds(w) {
				hit = &line[1]
			}
			if hit.holds(w) {
				*(*[4]uint32)(room[n:]) = hit.ids // all four: cheaper than asking how many
				n += int(hit.hi >> 60)
				start = end
				continue
			}
		}
		dst = e.encodeNew(room[:n], text[start:end])
		dst = slices.Grow(dst, 4*(len(ends)-i))
		n, room, lines = len(dst), dst[:cap(dst)], e.words.lines
		start = end
	}
	return room[:n]
}

// encodeNew appends the tokens of a pretoken that is not among the words.
func (e *Encoder) encodeNew(dst []uint32, piece []byte) []uint32 {
	n := len(dst)
	if len(piece) <= longestCached {
		if ids := e.pieces.find(piece); ids != nil {
			return append(dst, ids...)
		}
	}
	dst = e.merge.append(dst, piece)
	switch {
	case len(piece) <= shortWord && len(dst)-n <= 4:
		e.words.add(packWord(piece, 0, len(piece)), dst[n:])
	case len(piece) <= longestCached:
		e.pieces.add(piece, dst[n:])
	}
	return dst
}
