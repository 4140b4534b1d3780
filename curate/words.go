package curate

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Classes of characters. A word is a maximal run of letters, marks, digits and underscores, in which a single
// apostrophe or hyphen may stand between two of them; any other maximal run without white space is a symbol. Both are
// tokens.
//
// As a regular expression: [\p{L}\p{M}\p{N}_]+(?:['’-][\p{L}\p{M}\p{N}_]+)*|[^\s\p{L}\p{M}\p{N}_]+
// Invalid UTF-8 is a symbol of one character per byte.
const (
	letter = 1 << iota // \p{L}
	digit              // \p{M}, \p{N} and the underscore
	symbol
	joiner // ' and -, which are symbols too
	wide   // first byte of a character of several bytes
	space  = 0

	wordy = letter | digit
)

var class = func() (t [256]uint8) {
	for c := range t {
		switch {
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			t[c] = letter
		case '0' <= c && c <= '9' || c == '_':
			t[c] = digit
		case c == ' ' || '\t' <= c && c <= '\r' || 0x1c <= c && c <= 0x1f:
			t[c] = space
		case c == '\'' || c == '-':
			t[c] = symbol | joiner
		case c >= utf8.RuneSelf:
			t[c] = wide
		default:
			t[c] = symbol
		}
	}
	return t
}()

// plane is the class of each character of the basic plane.
var plane = sync.OnceValue(func() *[1 << 16]uint8 {
	t := new([1 << 16]uint8)
	for r := range rune(1 << 16) {
		t[r] = slowClass(r)
	}
	return t
})

func slowClass(r rune) uint8 {
	switch {
	case r == '’':
		return symbol | joiner
	case unicode.IsLetter(r):
		return letter
	case unicode.IsMark(r), unicode.IsNumber(r):
		return digit
	case unicode.IsSpace(r):
		return space
	}
	return symbol
}

func classOf(r rune) uint8 {
	if r < 1<<16 {
		return plane()[r]
	}
	return slowClass(r)
}

// The stop words of the Gopher rule (Rae et al. 2021, arXiv 2112.11446, appendix A.1), each with its bit.
var stopWords = [...]string{"the", "be", "to", "of", "and", "that", "have", "with"}

type stopWord struct {
	text uint64 // as load reads it
	bit  uint64
}

// stopTable finds a stop word by the top bits of its hash, which differ for all stop words.
var stopTable = func() (t [1 << stopBits]stopWord) {
	for i := range t {
		t[i].text = ^uint64(0) // equals no word: these words have at most four bytes
	}
	for i, s := range stopWords {
		e := &t[hashBytes([]byte(s))>>(64-stopBits)]
		if e.bit != 0 {
			panic("stop words collide")
		}
		*e = stopWord{load([]byte(s)), 1 << i}
	}
	return t
}()

const stopBits = 8

// load reads up to 8 bytes as a little-endian number.
func load(b []byte) (x uint64) {
	for i, c := range b[:min(len(b), 8)] {
		x |= uint64(c) << (8 * i)
	}
	return x
}

// wordFacts holds the facts about the tokens of a text that follow from the masks alone.
type wordFacts struct {
	tokens   int
	words    int // tokens that are words
	inWords  int // characters in words
	alpha    int // words with a letter
	hashSign int // occurrences of #
	ellipses int // occurrences of "..." and of "…"
	total    int // characters of the text
}

// edges finds where tokens start and end, block by block.
type edges struct {
	word, token uint64 // 1: the block before ends in a word, in a token
}

// next returns the bits of the first bytes of words and of symbols, and of the bytes directly after tokens.
func (e *edges) next(b *block) (words, symbols, ends uint64) {
	token := ^b.space
	symbol := token &^ b.word
	words = b.word &^ (b.word<<1 | e.word)
	symbols = symbol &^ (symbol<<1 | e.token&^e.word)
	ends = (token<<1 | e.token) & (b.space | words | symbols)
	e.word, e.token = b.word>>63, token>>63
	return words, symbols, ends
}

// scan fills w from the masks of the text.
func (w *wordFacts) scan(text []byte, m *maskSet) {
	*w = wordFacts{ellipses: m.ellipses, total: m.chars(0, len(text))}
	var e edges
	bare, carry := 0, uint64(0) // words without a letter
	marks, done := uint64(0), 0 // the last two bits of the block before; the end of the marks already counted
	for i := range m.blocks {
		b := &m.blocks[i]
		words, symbols, _ := e.next(b)
		w.words += bits.OnesCount64(words)
		w.tokens += bits.OnesCount64(words) + bits.OnesCount64(symbols)
		w.inWords += bits.OnesCount64(b.word &^ b.continued)
		w.hashSign += bits.OnesCount64(b.hash)

		// For a word that starts with other characters than letters, the sum has a bit behind those characters.
		plain := b.word &^ b.letter
		sum, c := bits.Add64(plain, words&plain, carry)
		bare += bits.OnesCount64(sum &^ plain &^ b.letter)
		carry = c

		third := b.mark & (b.mark<<1 | marks>>1) & (b.mark<<2 | marks)
		marks = b.mark >> 62
		for ; third != 0; third &= third - 1 {
			if at := blockSize*i + bits.TrailingZeros64(third); at >= done {
				var n int
				n, done = countEllipses(text, at-2)
				w.ellipses += n
			}
		}
	}
	w.alpha = w.words - bare
}

// countEllipses counts "..." in a run of marks, and returns its end.
func countEllipses(text []byte, at int) (n, end int) {
	dots := 0
	for ; at < len(text) && (text[at] == '.' || text[at] == '!' || text[at] == '?'); at++ {
		if text[at] != '.' {
			dots = 0
		} else if dots++; dots == 3 {
			n++
			dots = 0
		}
	}
	return n, at
}

// tokenFacts lists the tokens of a text one by one.
type tokenFacts struct {
	hashes []uint64
	chars  []uint32 // characters of the tokens before each token, and of all tokens
	stop   int      // distinct stop words
}

// Odd numbers without pattern whose lowest byte is a blank, so that no eight bytes of a token equal them.
const (
	mix1 = 0x9e3779b97f4a7c20 | 1<<63
	mix2 = 0xd6e8feb86659fd20
	mix3 = 0xa0761d6478bd642f
)

// heads holds the masks of the first n of 16 bytes.
var heads = func() (t [17][2]uint64) {
	for n := range t {
		t[n] = [2]uint64{1<<(8*min(n, 8)) - 1, 1<<(8*max(n-8, 0)) - 1}
	}
	return t
}()

// hash16 hashes a token of up to 16 bytes.
func hash16(low, high uint64, n int) uint64 {
	hi, lo := bits.Mul64(low^mix1, high^mix2)
	return hi ^ lo ^ uint64(n)*mix3
}

// hashBytes hashes a token. Two different tokens have equal hashes with a probability of about 2⁻⁶⁴.
func hashBytes(b []byte) uint64 {
	h, n := uint64(0), len(b)
	for ; len(b) > 16; b = b[16:] {
		hi, lo := bits.Mul64(h^binary.LittleEndian.Uint64(b)^mix3, binary.LittleEndian.Uint64(b[8:])^mix2)
		h = bits.RotateLeft64(h, 29) ^ hi ^ lo
	}
	return h*mix3 ^ hash16(load(b), load(b[min(len(b), 8):]), n)
}

// scan fills t from the text, its masks and its words.
func (t *tokenFacts) scan(text []byte, m *maskSet, w *wordFacts) {
	t.hashes = slices.Grow(t.hashes[:0], w.tokens)[:w.tokens]
	t.chars = slices.Grow(t.chars[:0], w.tokens+1)[:w.tokens+1]
	t.chars[0] = 0
	hashes, totals := t.hashes, t.chars[1:]
	near := len(text) - 16 // tokens that start there or before can be read as 16 bytes
	chars, stop := uint32(0), uint64(0)
	var e edges
	start, at, continued := 0, 0, uint64(0)
	for i := range m.blocks {
		b := &m.blocks[i]
		base, open := blockSize*i, e.token != 0
		words, symbols, ends := e.next(b)
		starts := words | symbols
		// some tokens here may have characters of several bytes
		wide := b.continued|continued != 0 || open && start < base-blockSize
		continued = b.continued
		if !open {
			start = base + bits.TrailingZeros64(starts)
			starts &= starts - 1
		}
		for ; ends != 0; ends &= ends - 1 {
			end := base + bits.TrailingZeros64(ends)
			n := end - start
			var h uint64
			if start <= near && n <= 16 {
				word := text[start : start+16]
				head := &heads[n]
				low := binary.LittleEndian.Uint64(word) & head[0]
				h = hash16(low, binary.LittleEndian.Uint64(word[8:])&head[1], n)
				s := &stopTable[h>>(64-stopBits)]
				d := s.text ^ low
				stop |= s.bit &^ uint64(int64(d|-d)>>63)
			} else {
				h = hashBytes(text[start:end])
				if s := &stopTable[h>>(64-stopBits)]; n <= 4 && s.text == load(text[start:end]) {
					stop |= s.bit
				}
			}
			if wide {
				n = m.chars(start, end)
			}
			chars += uint32(n)
			hashes[at], totals[at] = h, chars
			at++
			start = base + bits.TrailingZeros64(starts)
			starts &= starts - 1
		}
	}
	t.stop = bits.OnesCount64(stop)
}

// wordAt reports whether the character at i belongs to a word.
func wordAt(text []byte, i int) bool {
	if i >= len(text) {
		return false
	}
	k := class[text[i]]
	if k == wide {
		r, _ := utf8.DecodeRune(text[i:])
		k = classOf(r)
	}
	return k&wordy != 0
}
