package dedup

import (
	"encoding/binary"
	"math/bits"
	"unicode"
	"unicode/utf8"
)

// Words cuts text into normalised words and hashes them. A word is defined as in FineWeb's deduplication and
// CCNet, in short: letters in lower case, digits all 0, everything else a gap between words. So "Page 12:"
// and "page 34" are the same two words. Text above ASCII is treated by rune (letters, marks and numbers make words;
// invalid bytes stay as they are and make words too), and in scripts without gaps between words (Han, Hiragana,
// Katakana, Thai, Lao, Khmer, Burmese) each letter is a word. Accents are kept.
//
// A Words is for one goroutine; its buffers grow to about four times the longest text.
type Words struct {
	text   []byte // normalised, in whole blocks
	masks  []uint64
	runes  []byte // normalised rune by rune, when the text is not all ASCII
	hashes []uint64
}

// Hashes returns a 64-bit hash of each word of text, valid until the next call.
func (w *Words) Hashes(text []byte) []uint64 {
	w.fold(text)
	h := w.hashes[:0]
	start := -1 // start of a word that began in an earlier block
	for i, m := range w.masks {
		base := 64 * i
		if start >= 0 {
			n := bits.TrailingZeros64(^m)
			if n == 64 {
				continue
			}
			h = append(h, hashWord(w.text, start, base+n-start))
			m &= ^uint64(0) << n
			start = -1
		}
		for m != 0 {
			from := bits.TrailingZeros64(m)
			n := bits.TrailingZeros64(^(m >> from)) // the zeros shifted in from above mark the end of the word
			if from+n >= 64 {
				start = base + from
				break
			}
			h = append(h, hashWord(w.text, base+from, n))
			m &= ^uint64(0) << (from + n)
		}
	}
	if start >= 0 {
		h = append(h, hashWord(w.text, start, 64*len(w.masks)-start))
	}
	w.hashes = h
	return h
}

// Normal appends the normalised words of text to dst, with one blank between.
func (w *Words) Normal(dst, text []byte) []byte {
	w.fold(text)
	first := len(dst)
	for i := 0; i < len(w.text)-slack; i++ {
		if c := w.text[i]; c != ' ' {
			if i > 0 && len(dst) > first && w.text[i-1] == ' ' {
				dst = append(dst, ' ')
			}
			dst = append(dst, c)
		}
	}
	return dst
}

// slack is the number of readable bytes after the blocks.
const slack = 8

// fold fills w.text and w.masks.
func (w *Words) fold(text []byte) {
	if w.blocks(text) {
		w.runes = foldRunes(w.runes[:0], text)
		w.blocks(w.runes)
	}
}

// blocks normalises bytes and reports whether some were above ASCII.
func (w *Words) blocks(text []byte) (high bool) {
	n := (len(text) + 63) / 64
	if w.text == nil || cap(w.masks) < n {
		w.masks = make([]uint64, n+n/4)
		w.text = make([]byte, 64*len(w.masks)+slack)
	}
	w.masks, w.text = w.masks[:n], w.text[:64*n+slack]
	whole := len(text) / 64
	high = normalise(w.text, text, w.masks[:whole])
	if whole < n {
		var last [64]byte
		copy(last[:], text[64*whole:])
		if normalise(w.text[64*whole:], last[:], w.masks[whole:]) {
			high = true
		}
	}
	return high
}

// noGaps are the scripts that do not put blanks between words.
var noGaps = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

// foldRunes appends text to dst with runes in lower case, or replaced by a blank if they are not part of words.
func foldRunes(dst, text []byte) []byte {
	for len(text) > 0 {
		if c := text[0]; c < utf8.RuneSelf {
			dst = append(dst, c)
			text = text[1:]
			continue
		}
		r, n := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(dst, text[0])
		case r >= 0xe00 && unicode.In(r, noGaps...) && unicode.IsLetter(r):
			dst = append(dst, ' ')
			dst = append(dst, text[:n]...)
			dst = append(dst, ' ')
		case unicode.IsDigit(r):
			dst = append(dst, '0')
		case unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r):
			dst = utf8.AppendRune(dst, unicode.ToLower(r))
		default:
			dst = append(dst, ' ')
		}
		text = text[n:]
	}
	return dst
}

const (
	k1 = 0x9e3779b97f4a7c15 // odd numbers without pattern
	k2 = 0xd6e8feb86659fd93
)

// fold64 mixes two numbers by the two halves of their product.
func fold64(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// hashWord hashes n ≥ 1 bytes at from; eight bytes after them can be read.
func hashWord(text []byte, from, n int) uint64 {
	v := binary.LittleEndian.Uint64(text[from:])
	if n <= 8 {
		return fold64(v<<(64-8*n)^k1, k2+uint64(n))
	}
	h := uint64(n)
	for ; n > 8; n -= 8 {
		h = fold64(h^v^k1, k2)
		from += 8
		v = binary.LittleEndian.Uint64(text[from:])
	}
	return fold64(h^v<<(64-8*n)^k1, k2)
}

// NGrams replaces words, the hashes of single words, by the hashes of each n consecutive words, in place, and returns
// them. Between one and n−1 words are one n-gram. An n below 1 counts as 1.
func NGrams(words []uint64, n int) []uint64 {
	if len(words) == 0 {
		return words
	}
	n = min(max(n, 1), len(words))
	out := uint64(1) // k1 to the n: the weight of the word that leaves
	for range n {
		out *= k1
	}
	sum := uint64(0) // Σ w_i·k1^(n−1−i), mod 2⁶⁴
	for _, w := range words[:n] {
		sum = sum*k1 + w
	}
	last := words[0]
	words[0] = sum
	for i, w := range words[n:] {
		sum = sum*k1 + w - last*out
		last, words[i+1] = words[i+1], sum
	}
	return words[:len(words)-n+1]
}
