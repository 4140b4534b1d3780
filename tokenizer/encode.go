package tokenizer

import (
	"encoding/binary"
	"slices"

	"anneal/internal/nfc"
)

// Encoder encodes texts. It holds up to about 20 MiB of caches and must be used from one goroutine.
type Encoder struct {
	t      *Tokenizer
	split  splitter
	merge  merger
	words  wordCache
	late   wordCache // words evicted from words
	pieces pieceCache
	ends   [512]int
	end    int64  // the token that ends a text, which text never yields; -1 if it is not known
	normal []byte // the current text, normalized
}

// NewEncoder returns an encoder with empty caches, which grow with use.
func (t *Tokenizer) NewEncoder() *Encoder {
	end := int64(-1)
	if id, err := t.EndOfText(); err == nil {
		end = int64(id)
	}
	return &Encoder{
		t:     t,
		end:   end,
		split: t.pattern.new(),
		merge: merger{t: t},
		words: newWordCache(mainLines),
		late:  newWordCache(lateLines),
	}
}

// Encode appends the tokens of text to dst. No text yields a special token: "<|endoftext|>" is encoded like any other
// characters. Tokens that were only added to the vocabulary ([Special.Added]) are found in text, as in Hugging Face's
// tokenizers. text need not be valid UTF-8.
func (e *Encoder) Encode(dst []uint32, text []byte) []uint32 {
	return e.encodeAround(dst, &e.t.added, e.end, text)
}

// EncodeSpecial appends the tokens of text to dst. The texts of all special tokens represent those tokens; of two that
// start at the same place the longer one counts. Use it only for trusted text: a text from outside could end a document
// or pretend to be another speaker.
func (e *Encoder) EncodeSpecial(dst []uint32, text []byte) []uint32 {
	return e.encodeAround(dst, &e.t.marked, -1, text)
}

// encodeAround appends the special tokens but one that m finds in text, and the tokens of the text between them.
func (e *Encoder) encodeAround(dst []uint32, m *matchers, but int64, text []byte) []uint32 {
	if m.empty() {
		return e.encode(dst, e.normalized(text))
	}
	special := func(id uint32) { dst = append(dst, id) }
	e.t.cut(&m.raw, but, text, special, func(text []byte) {
		e.t.cut(&m.normal, but, e.normalized(text), special, func(text []byte) { dst = e.encode(dst, text) })
	})
	return dst
}

// normalized returns text, in NFC if the tokenizer's file asks for that, until the next call.
func (e *Encoder) normalized(text []byte) []byte {
	if !e.t.nfc {
		return text
	}
	text = e.t.normalize(e.normal[:0], text)
	if e.normal = text; cap(text) > keepNormal {
		e.normal = nil
	}
	return text
}

// normalize appends text to dst, in NFC if the tokenizer's file asks for that.
func (t *Tokenizer) normalize(dst, text []byte) []byte {
	if !t.nfc {
		return append(dst, text...)
	}
	return nfc.Append(dst, text)
}

// keepNormal is the largest buffer, in bytes, that is kept for the next text.
const keepNormal = 1 << 22

// encode appends the tokens of normalized text.
func (e *Encoder) encode(dst []uint32, text []byte) []uint32 {
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

// NewPretokenizer returns a function, for one goroutine, that splits a text into pretokens and returns their number,
// for measurements.
func (t *Tokenizer) NewPretokenizer() func(text []byte) int {
	s, ends := t.pattern.new(), make([]int, 512)
	return func(text []byte) (all int) {
		s.reset(text)
		for n := s.next(ends); n > 0; n = s.next(ends) {
			all += n
		}
		return all
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
			// packWord and find, inlined by hand: this is most of the work, and calls would double its time.
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
				*(*[4]uint32)(room[n:]) = hit.ids // copies all four: cheaper than checking the number
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

// encodeNew appends the tokens of a pretoken that is not in the first cache.
func (e *Encoder) encodeNew(dst []uint32, piece []byte) []uint32 {
	if len(piece) > longestCached {
		return e.merge.append(dst, piece)
	}
	var w word
	if len(piece) <= shortWord {
		w = packWord(piece, 0, len(piece))
		if hit := e.words.find(w); hit != nil { // encodePieces does not look up the end of a text
			return append(dst, hit.ids[:hit.hi>>60]...)
		}
		if hit := e.late.find(w); hit != nil {
			found := *hit
			e.remember(found)
			return append(dst, found.ids[:found.hi>>60]...)
		}
	}
	if ids := e.pieces.find(piece); ids != nil {
		return append(dst, ids...)
	}
	n := len(dst)
	dst = e.merge.append(dst, piece)
	if ids := dst[n:]; len(piece) <= shortWord && len(ids) <= 4 {
		found := entry{lo: w.lo, hi: w.hi | uint64(len(ids))<<60}
		copy(found.ids[:], ids)
		e.remember(found)
	} else {
		e.pieces.add(piece, ids)
	}
	return dst
}

// remember stores a word in the first cache; the evicted word moves to the second.
func (e *Encoder) remember(found entry) {
	if gone := e.words.add(found); gone.hi != 0 && e.late.find(gone.word()) == nil {
		e.late.add(gone)
	}
}
