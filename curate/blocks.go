package curate

import (
	"math/bits"
	"unicode/utf8"
)

const (
	blockSize = 64
	lookahead = 2 // bytes after a block that its masks depend on
)

// block classifies 64 bytes of a text for the rules, with one bit per byte. The assembly depends on the order of the
// fields.
type block struct {
	letter  uint64 // a-z, A-Z; once decoded also every byte of \p{L}
	digit   uint64 // 0-9
	word    uint64 // letters, digits, underscores; once decoded also \p{M}, \p{N} and the joiners inside a word
	newline uint64 // LF
	space   uint64 // white space, LF included; once decoded also that of Unicode
	foreign uint64 // not ASCII
	control uint64 // characters that Normalize removes: control characters except tab and LF
	joiner  uint64 // ' -
	closer  uint64 // " ' ) ]
	mark    uint64 // . ? !
	hash    uint64 // #
	odd     uint64 // [ { and the starts of triples: the fast path of C4 does not handle them

	continued uint64 // bytes of a character after its first; invalid bytes are characters
}

// maskSet holds the masks of a whole text, as if white space followed it.
type maskSet struct {
	blocks   []block // one more than the text has
	foreign  bool    // some of the text is not ASCII
	unusual  bool    // it has single characters that Normalize would change
	ellipses int     // occurrences of …
}

// scan fills m from the text.
func (m *maskSet) scan(text []byte) {
	n := (len(text) + blockSize - 1) / blockSize
	if cap(m.blocks) <= n {
		m.blocks = make([]block, n+n/4+1)
	}
	m.blocks, m.ellipses = m.blocks[:n+1], 0
	direct := max(len(text)-lookahead, 0) / blockSize
	if direct > 0 {
		classify(m.blocks[:direct], text)
	}
	for i := direct; i < n; i++ {
		var last [blockSize + lookahead]byte
		for j := copy(last[:], text[blockSize*i:]); j < len(last); j++ {
			last[j] = ' '
		}
		classify(m.blocks[i:i+1], last[:])
	}
	m.blocks[n] = block{space: ^uint64(0)}

	foreign, control := uint64(0), uint64(0)
	for i := range m.blocks {
		foreign |= m.blocks[i].foreign
		control |= m.blocks[i].control
	}
	m.foreign, m.unusual = foreign != 0, control != 0
	if m.foreign {
		m.decode(text)
	}
	before := uint64(0)
	for i := range m.blocks[:n] {
		b := &m.blocks[i]
		w := b.word
		b.word |= b.joiner & (w<<1 | before) & (w>>1 | m.blocks[i+1].word<<63)
		before = w >> 63
	}
}

// decode adds the characters above ASCII to the masks.
func (m *maskSet) decode(text []byte) {
	classes, next := plane(), 0
	for k := range m.blocks {
		for left := m.blocks[k].foreign; left != 0; {
			o := bits.TrailingZeros64(left)
			i := blockSize*k + o
			if i < next { // the end of a character that started in the block before
				left &= left - 1
				continue
			}
			r, size := utf8.DecodeRune(text[i:])
			next = i + size
			left &= ^uint64(0) << (o + size)
			all := uint64(1)<<size - 1
			low, high := all<<o, all>>(blockSize-o)
			c := uint8(symbol)
			if r < 1<<16 {
				c = classes[r]
			} else {
				c = slowClass(r)
			}
			if r == utf8.RuneError && size == 1 || !usual(r) {
				m.unusual = true
			}
			b, after := &m.blocks[k], &m.blocks[k+1]
			b.continued |= low &^ (1 << o)
			after.continued |= high
			switch {
			case c == letter:
				b.letter |= low
				after.letter |= high
				fallthrough
			case c == digit, c&joiner != 0 && m.wordBefore(i) && wordAt(text, i+size):
				b.word |= low
				after.word |= high
			case c == space:
				b.space |= low
				after.space |= high
			case r == '…':
				m.ellipses++
			}
		}
	}
}

// wordBefore reports whether the character that ends at i belongs to a word.
func (m *maskSet) wordBefore(i int) bool {
	i--
	return i >= 0 && m.blocks[i/blockSize].word>>(i%blockSize)&1 != 0
}

// chars counts the characters of text[from:to], neither of which lies inside one.
func (m *maskSet) chars(from, to int) int {
	n := to - from
	if !m.foreign || n == 0 {
		return n
	}
	for k := from / blockSize; k <= (to-1)/blockSize; k++ {
		n -= bits.OnesCount64(m.blocks[k].continued & within(k, from, to))
	}
	return n
}

// within returns the bits of block k that lie in [from, to), at least one.
func within(k, from, to int) uint64 {
	mask := ^uint64(0)
	if d := from - blockSize*k; d > 0 {
		mask <<= d
	}
	if d := blockSize*(k+1) - to; d > 0 {
		mask &= ^uint64(0) >> d
	}
	return mask
}

// triples are groups of three letters, in lower case. Each phrase by which C4 drops lines (c4.go) contains one.
var triples = [...]string{"vac", "psu", "kie", "rms", "jav"}

// tripleAt reports whether text starts with one of the triples, in upper or lower case.
func tripleAt(text []byte) bool {
	for _, t := range triples {
		if len(text) >= 3 && text[0]|0x20 == t[0] && text[1]|0x20 == t[1] && text[2]|0x20 == t[2] {
			return true
		}
	}
	return false
}

// spread maps each byte to its bits in eight masks, eight bits apart.
type spread [256]uint64

func spreadOf(classes ...func(c byte) bool) (t spread) {
	for c := range t {
		for i, is := range classes {
			if is(byte(c)) {
				t[c] |= 1 << (8 * i)
			}
		}
	}
	return t
}

func oneOf(set string) func(c byte) bool {
	return func(c byte) bool {
		for i := range len(set) {
			if c == set[i] {
				return true
			}
		}
		return false
	}
}

var spreadWords = spreadOf(
	func(c byte) bool { return class[c]&letter != 0 }, func(c byte) bool { return '0' <= c && c <= '9' },
	func(c byte) bool { return class[c]&wordy != 0 }, oneOf("\n"), func(c byte) bool { return class[c] == space },
	func(c byte) bool { return c >= utf8.RuneSelf },
	func(c byte) bool { return c < ' ' && c != '\t' && c != '\n' || c == 0x7f },
	func(c byte) bool { return class[c]&joiner != 0 },
)

var spreadMarks = spreadOf(oneOf(`"')]`), oneOf(".?!"), oneOf("#"), oneOf("[{"), oneOf("vpkrjVPKRJ"))

const leadBit = 8 * 4 // of spreadMarks: first letters of triples

// classifyGeneric fills blocks with the masks of the text. It reads two bytes beyond the last block. It works on eight
// bytes at a time: a table gives the bits of one byte in eight masks, and the bits of eight bytes fit side by side.
func classifyGeneric(blocks []block, text []byte) {
	for i := range blocks {
		from := (*[blockSize + lookahead]byte)(text[blockSize*i:])
		var fields [13]uint64
		for j := 0; j < blockSize; j += 8 {
			words, marks := uint64(0), uint64(0)
			for k, c := range from[j : j+8] {
				words |= spreadWords[c] << k
				marks |= spreadMarks[c] << k
			}
			for f := range 8 {
				fields[f] |= words >> (8 * f) & 0xff << j
			}
			for f := range 5 {
				fields[8+f] |= marks >> (8 * f) & 0xff << j
			}
		}
		odd := fields[11]
		for may := fields[12]; may != 0; may &= may - 1 {
			at := bits.TrailingZeros64(may)
			if tripleAt(from[at:]) {
				odd |= 1 << at
			}
		}
		blocks[i] = block{
			letter: fields[0], digit: fields[1], word: fields[2], newline: fields[3], space: fields[4],
			foreign: fields[5], control: fields[6], joiner: fields[7], closer: fields[8], mark: fields[9],
			hash: fields[10], odd: odd,
		}
	}
}

// normal reports whether Normalize would leave a text without surrounding white space unchanged.
func (m *maskSet) normal() bool {
	if m.unusual {
		return false
	}
	blank, ends := uint64(0), uint64(0) // of the block before: its last byte is a blank; its last two, LF
	for i := range m.blocks {
		b := &m.blocks[i]
		n := b.newline
		blanks := b.space &^ n &^ b.foreign
		if n&(blanks<<1|blank)|n&(n<<1|ends>>1)&(n<<2|ends) != 0 {
			return false
		}
		blank, ends = blanks>>63, n>>62
	}
	return true
}

// betweenDigits yields the places of . ? ! between two digits.
func (m *maskSet) betweenDigits(yield func(at int) bool) {
	before := uint64(0)
	for i := range m.blocks[:len(m.blocks)-1] {
		b := &m.blocks[i]
		for hits := b.mark & (b.digit<<1 | before) & (b.digit>>1 | m.blocks[i+1].digit<<63); hits != 0; hits &= hits -
			1 {
			if !yield(blockSize*i + bits.TrailingZeros64(hits)) {
				return
			}
		}
		before = b.digit >> 63
	}
}
