package tokenizer

import (
	"encoding/binary"
	"math/bits"
)

// blockSize is the number of bytes that are classified at once: one bit each in a 64-bit mask.
const blockSize = 64

// masks has one bit per byte of a block and class; bits from limit on are zero.
type masks struct {
	letter, number uint64
	space          uint64 // white space but \r and \n
	blank          uint64 // the space character, also in space
	newline        uint64 // \r, \n
	apostrophe     uint64
	limit          int // bytes before the first one that is not ASCII or not in the text
}

// block finds the pretokens whose ends are certain from the next 64 bytes alone, and writes their ends; 0 means that
// not even the first is certain. pos must be the start of a pretoken, so no state is carried from block to block: the
// last pretoken, whose end is not known, starts the next one.
func (s *handSplitter) block(ends []int) int {
	var b *[blockSize]byte
	var m masks
	if rest := s.text[s.pos:]; len(rest) >= blockSize {
		b = (*[blockSize]byte)(rest)
		m = classify(b)
	} else {
		var tail [blockSize]byte
		for i := copy(tail[:], rest); i < blockSize; i++ {
			tail[i] = 0x80
		}
		b = &tail
		m = classify(b)
	}
	var starts uint64
	if s.grammar == gpt2 {
		starts = startsGPT2(&m)
	} else {
		starts = startsLlama3(&m)
	}
	starts = contractions(starts, &m, b, s.grammar != gpt2)
	starts = certain(starts, &m) &^ 1

	n := 0
	ends = ends[:blockSize]
	for ; starts != 0; starts &= starts - 1 {
		ends[n&(blockSize-1)] = s.pos + bits.TrailingZeros64(starts)
		n++
	}
	return n
}

// startsGPT2 marks where pretokens of the GPT-2 pattern start, but for contractions.
func startsGPT2(m *masks) uint64 {
	white := m.space | m.newline
	odd := ^(m.letter | m.number | white) & below(m.limit)
	ink := m.letter | m.number | odd
	heads := m.letter&^(m.letter<<1) | m.number&^(m.number<<1) | odd&^(odd<<1)
	heads &^= m.blank << 1 // the blank before a word belongs to it
	// White space starts a pretoken, and its last character starts another.
	return heads | white&^(white<<1) | white&(ink>>1)
}

// startsLlama3 marks where pretokens of the cl100k and Llama 3 patterns start, but for contractions. Those two differ
// only in white space at the end of a text, which is never certain in a block.
func startsLlama3(m *masks) uint64 {
	white := m.space | m.newline
	odd := ^(m.letter | m.number | white) & below(m.limit)
	ink := m.letter | m.number | odd

	// A single odd character that starts a pretoken joins the letters after it, as any white space but newlines does.
	odds := odd &^ (odd << 1) &^ (m.blank << 1)
	letters := m.letter &^ (m.letter << 1) &^ ((m.space | odds) << 1)
	starts := odds | letters | threes(m.number)

	// Newlines right after odd characters belong to them; what follows those newlines starts a pretoken.
	eaten := odd << 1 & m.newline
	afterEaten := (m.newline + eaten) &^ m.newline
	starts |= m.newline &^ (white << 1) &^ (odd << 1)

	// Other white space: its first character after ink, and its last character before ink.
	heads := m.space &^ (m.space << 1)
	starts |= heads&(ink<<1|afterEaten) | m.space&(ink>>1)
	// After a newline, white space starts a pretoken unless another newline follows it: `\s*[\r\n]+` takes all of that.
	if lines := heads & (m.newline << 1); lines != 0 {
		inner := m.space & (m.newline >> 1)
		if inner != 0 {
			lines &^= fillDown(inner, m.space)
		}
		starts |= lines
	}
	return starts
}

// threes marks every third digit of each run.
func threes(number uint64) uint64 {
	starts := number &^ (number << 1)
	for later := number & (number << 1) & (number << 2) & (number << 3); later != 0; {
		b := later & -later
		starts |= b
		later &^= b | b<<1 | b<<2
	}
	return starts
}

// fillDown spreads the bits of from towards lower positions as far as through has an unbroken run of ones.
func fillDown(from, through uint64) uint64 {
	for shift := 1; shift < blockSize; shift <<= 1 {
		from |= from >> shift & through
		through &= through >> shift
	}
	return from
}

// contractions puts the ends of 's, 're … into starts. An apostrophe opens one when it starts a pretoken.
func contractions(starts uint64, m *masks, b *[blockSize]byte, fold bool) uint64 {
	odd := ^(m.letter | m.number | m.space | m.newline)
	for open := m.apostrophe &^ (odd<<1 | m.blank<<1) & (m.letter >> 1); open != 0; open &= open - 1 {
		i := bits.TrailingZeros64(open)
		if n := contraction(b[i:m.limit], fold); n > 0 {
			starts = starts&^(1<<(i+1)) | 1<<(i+n)
		}
	}
	return starts
}

// certain removes the starts that the bytes from limit on could change: those after the first character of white space
// that reaches the limit.
func certain(starts uint64, m *masks) uint64 {
	starts &= below(m.limit)
	reach := bits.Len64(^(m.space | m.newline) & below(m.limit)) // after the last ink
	return starts & below(reach+1)
}

// below has the bits 0 … n-1 set.
func below(n int) uint64 { return 1<<uint(n) - 1 }

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// classify computes the masks eight bytes at a time: comparisons of all bytes of a word by additions whose carries stay
// in their byte, then a multiplication that gathers the eight top bits.
func classify(b *[blockSize]byte) (m masks) {
	var foreign uint64
	for k := 0; k < blockSize; k += 8 {
		x := binary.LittleEndian.Uint64(b[k:])
		foreign |= gather(x&highs) << k
		y := x &^ highs
		z := y | ' '*ones
		letters := (z + (0x80-'a')*ones) &^ (z + (0x7f-'z')*ones) & highs
		digits := (y + (0x80-'0')*ones) &^ (y + (0x7f-'9')*ones) & highs
		newlines := (equal(y, '\n') | equal(y, '\r'))
		blanks := equal(y, ' ')
		spaces := (y+(0x80-'\t')*ones)&^(y+(0x7f-'\r')*ones)&highs&^newlines | blanks
		m.letter |= gather(letters) << k
		m.number |= gather(digits) << k
		m.space |= gather(spaces) << k
		m.blank |= gather(blanks) << k
		m.newline |= gather(newlines) << k
		m.apostrophe |= gather(equal(y, '\'')) << k
	}
	m.limit = bits.TrailingZeros64(foreign)
	if m.limit < blockSize {
		in := below(m.limit)
		m.letter &= in
		m.number &= in
		m.space &= in
		m.blank &= in
		m.newline &= in
		m.apostrophe &= in
	}
	return m
}

// equal sets the top bit of each byte of y (all below 0x80) that is c.
func equal(y uint64, c byte) uint64 {
	return ^((y ^ uint64(c)*ones) + 0x7f*ones) & highs
}

// gather packs the top bits of the eight bytes into one byte, lowest first.
func gather(x uint64) uint64 {
	return x >> 7 * 0x0102040810204080 >> 56
}
