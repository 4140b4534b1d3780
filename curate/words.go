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

// The stop words of the Gopher rule (Rae et al. 2021, arXiv 2112.11446, appendix A.1), as the bytes of a little-endian word.
var stopWords = [...]uint32{
	pack("the"), pack("be"), pack("to"), pack("of"), pack("and"), pack("that"), pack("have"), pack("with"),
}

func pack(s string) uint32 {
	var b [4]byte
	copy(b[:], s)
	return binary.LittleEndian.Uint32(b[:])
}

// wordFacts is what one pass over the tokens of a text finds out.
type wordFacts struct {
	hashes   []uint64 // of each token
	chars    []uint32 // characters of the tokens before each token, and of all tokens
	words    int      // tokens that are words
	inWords  int      // characters in words
	alpha    int      // words with a letter
	stop     int      // distinct stop words
	hashSign int      // occurrences of #
	ellipses int      // occurrences of "..." and of "…"
	total    int      // characters of the text
	suspect  bool     // a phrase of the C4 rules may occur
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
	var last uint64
	switch n := len(b); {
	case n == 8:
		last = binary.LittleEndian.Uint64(b)
	case n >= 4:
		last = uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<32
	case n > 0:
		last = uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	hi, lo := bits.Mul64(h^last, mix1)
	return hi ^ lo ^ last
}

// scan fills w from the text.
func (w *wordFacts) scan(text []byte) {
	*w = wordFacts{hashes: w.hashes[:0], chars: append(w.chars[:0], 0)}
	extra := 0 // bytes that continue a character, in the whole text
	chars := uint32(0)
	stop := uint32(0)
	n := len(text)
	for i := 0; i < n; {
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
			stop |= w.look(text, start, i)
		}
		w.hashes = append(w.hashes, hashBytes(text[start:i]))
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

// look returns the bit of the stop word that the word is, and notices parts of C4's phrases.
func (w *wordFacts) look(text []byte, start, end int) uint32 {
	size := end - start
	if size < 4 {
		if size > 1 {
			x := uint32(text[start]) | uint32(text[start+1])<<8
			if size == 3 {
				x |= uint32(text[start+2]) << 16
			}
			for i := range 5 {
				if stopWords[i] == x {
					return 1 << i
				}
			}
		}
		return 0
	}
	first := binary.LittleEndian.Uint32(text[start:])
	if size == 4 {
		for i := 5; i < len(stopWords); i++ {
			if stopWords[i] == first {
				return 1 << i
			}
		}
	}
	if !w.suspect {
		const lower = 0x20202020
		last := binary.LittleEndian.Uint32(text[end-4:]) | lower
		w.suspect = first|lower == cook || last == okie || last == orem || last == erms || last == vacy || size >= 10 && hasJ(text[start:end])
	}
	return 0
}

var cook, okie, orem, erms, vacy = pack("cook"), pack("okie"), pack("orem"), pack("erms"), pack("vacy")

func hasJ(word []byte) bool {
	for _, c := range word {
		if c|0x20 == 'j' {
			return true
		}
	}
	return false
}
