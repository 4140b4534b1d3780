package tokenizer

import "slices"

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
	for i, end := range ends {
		if end-start <= shortWord {
			w := packWord(text, start, end)
			if hit := e.words.find(w); hit != nil {
				*(*[4]uint32)(room[n:]) = hit.ids // all four: cheaper than asking how many
				n += int(hit.hi >> 60)
				start = end
				continue
			}
		}
		dst = e.encodeNew(room[:n], text[start:end])
		dst = slices.Grow(dst, 4*(len(ends)-i))
		n, room = len(dst), dst[:cap(dst)]
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
