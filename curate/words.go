package curate

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Classes of characters. A word is a maximal run of letters, marks, digits and underscores, in which a single apostrophe
// or hyphen may stand between two of them; any other maximal run without white space is a symbol. Both are tokens.
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
	bit  uint32
}

// stopTable finds a stop word by the top bits of its hash, where no two of them are equal.
var stopTable = func() (t [1 << stopBits]stopWord) {
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
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b)
	}
	for i, c := range b {
		x |= uint64(c) << (8 * i)
	}
	return x
}

// wordFacts is what one pass over the tokens of a text finds out.
type wordFacts struct {
	hashes   []uint64 // of each token
	suspects []int32  // where words start that may be of a phrase of the C4 rules
	chars    []uint32 // characters of the tokens before each token, and of all tokens
	words    int      // tokens that are words
	inWords  int      // characters in words
	alpha    int      // words with a letter
	stop     int      // distinct stop words
	hashSign int      // occurrences of #
	ellipses int      // occurrences of "..." and of "…"
	total    int      // characters of the text
}

const (
	mix1 = 0x9e3779b97f4a7c15
	mix2 = 0xd6e8feb86659fd93
)

// hashBytes hashes a token; two tokens that differ have equal hashes once in 2⁶⁴ or so.
func hashBytes(b []byte) uint64 {
	h := uint64(len(b)) * mix2
	for len(b) > 8 {
		hi, lo := bits.Mul64(h^binary.LittleEndian.Uint64(b), mix1)
		h = hi ^ lo
		b = b[8:]
	}
	return hashLast(h, load(b))
}

// hashLast ends a hash with the last one to eight bytes of a token.
func hashLast(h, last uint64) uint64 {
	hi, lo := bits.Mul64(h^last^mix2, mix1)
	return hi ^ lo ^ last
}

// letters says of how many ASCII letters the low bytes of x are, from the lowest on.
func letters(x uint64) int {
	const (
		ones = 0x0101010101010101
		high = 0x8080808080808080
	)
	low := (x | 0x20*ones) &^ high
	above := low + (0x80-'a')*ones    // high bit: 'a' or more
	beyond := low + (0x80-'z'-1)*ones // high bit: more than 'z'
	return bits.TrailingZeros64(^(above&^beyond&^x)&high) / 8
}

// scan fills w from the text.
func (w *wordFacts) scan(text []byte) {
	*w = wordFacts{hashes: w.hashes[:0], suspects: w.suspects[:0], chars: append(w.chars[:0], 0)}
	extra := 0 // bytes that continue a character, in the whole text
	chars := uint32(0)
	stop := uint32(0)
	n := len(text)
	for i := 0; i < n; {
		if i+9 <= n { // a short word of ASCII letters, which is most of them
			x := binary.LittleEndian.Uint64(text[i:])
			if size := letters(x); size > 0 && size < 8 && class[text[i+size]]&(wordy|joiner|wide) == 0 {
				x &= 1<<(8*size) - 1
				h := hashLast(uint64(size)*mix2, x)
				if e := &stopTable[h>>(64-stopBits)]; e.text == x {
					stop |= e.bit
				}
				if size >= 4 && suspicious(uint32(x), uint32(x>>(8*size-32))) {
					w.suspects = append(w.suspects, int32(i))
				}
				w.words++
				w.alpha++
				w.inWords += size
				w.hashes = append(w.hashes, h)
				chars += uint32(size)
				w.chars = append(w.chars, chars)
				i += size
				if text[i] == ' ' {
					i++
				}
				continue
			}
		}
		k := class[text[i]]
		if k == space {
			i++
			continue
		}
		start, before := i, extra
		if k == wide {
			r, size := utf8.DecodeRune(text[i:])
			k = classOf(r)
			extra += size - 1
			i += size - 1
			if k == space {
				i++
				continue
			}
		}
		i++
		if k&wordy == 0 {
			i, extra = w.symbol(text, start, i, extra)
		} else {
			seen := k
			for i < n {
				k = class[text[i]]
				if k&wordy != 0 {
					seen |= k
					i++
					continue
				}
				if k == space || k == symbol {
					break
				}
				size := 1
				if k == wide {
					var r rune
					r, size = utf8.DecodeRune(text[i:])
					k = classOf(r)
				}
				if k&wordy == 0 && (k&joiner == 0 || !wordAt(text, i+size)) {
					break
				}
				seen |= k & wordy
				extra += size - 1
				i += size
			}
			w.words++
			w.inWords += i - start - (extra - before)
			if seen&letter != 0 {
				w.alpha++
			}
			if i-start >= 4 && suspicious(binary.LittleEndian.Uint32(text[start:]), binary.LittleEndian.Uint32(text[i-4:])) {
				w.suspects = append(w.suspects, int32(start))
			}
		}
		h := hashBytes(text[start:i])
		if e := &stopTable[h>>(64-stopBits)]; i-start <= 4 && e.text == load(text[start:i]) {
			stop |= e.bit
		}
		w.hashes = append(w.hashes, h)
		chars += uint32(i - start - (extra - before))
		w.chars = append(w.chars, chars)
	}
	w.stop = bits.OnesCount32(stop)
	w.total = n - extra
}

// wordAt says whether a character of a word is at i.
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

// symbol goes on to the end of a symbol and counts the marks that rules ask for.
func (w *wordFacts) symbol(text []byte, start, i, extra int) (end, continued int) {
	for i < len(text) {
		k, size := class[text[i]], 1
		if k == wide {
			var r rune
			r, size = utf8.DecodeRune(text[i:])
			k = classOf(r)
		}
		if k&symbol == 0 {
			break
		}
		extra += size - 1
		i += size
	}
	dots := 0
	for j, c := range text[start:i] {
		if c != '.' {
			dots = 0
		} else if dots++; dots == 3 {
			w.ellipses++
			dots = 0
		}
		if c == '#' {
			w.hashSign++
		}
		if c == 0xe2 && i-start-j >= 3 && text[start+j+1] == 0x80 && text[start+j+2] == 0xa6 {
			w.ellipses++
		}
	}
	return i, extra
}

// suspicious says whether a word may be of a phrase of the C4 rules (c4.go), by its first and its last four bytes:
// cook|ies, cookie, lorem, terms, privacy.
func suspicious(first, last uint32) bool {
	const (
		lower = 0x20202020
		cook  = 'c' | 'o'<<8 | 'o'<<16 | 'k'<<24
		okie  = 'o' | 'k'<<8 | 'i'<<16 | 'e'<<24
		orem  = 'o' | 'r'<<8 | 'e'<<16 | 'm'<<24
		erms  = 'e' | 'r'<<8 | 'm'<<16 | 's'<<24
		vacy  = 'v' | 'a'<<8 | 'c'<<16 | 'y'<<24
	)
	last |= lower
	return first|lower == cook || last == okie || last == orem || last == erms || last == vacy
}
