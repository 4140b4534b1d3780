package tokenizer

import "math/bits"

// blockSize is the number of bytes that are classified at once: one bit each in a 64-bit mask.
const blockSize = 64

// masks has one bit per byte of a block and class; bits from limit on are zero. The assembly knows the order of the
// first seven fields.
type masks struct {
	letter, number uint64
	space          uint64 // white space but \r and \n
	blank          uint64 // the space character, also in space
	newline        uint64 // \r, \n
	apostrophe     uint64
	foreign        uint64 // not ASCII
	limit          int    // bytes before the first foreign one
}

// block finds the pretokens whose ends are certain from the next 64 bytes alone, and writes their ends; 0 means that
// not even the first is certain. pos must be the start of a pretoken, so no state is carried from block to block: the
// last pretoken, whose end is not known, starts the next one.
func (s *handSplitter) block(ends []int) int {
	var b *[blockSize]byte
	var m masks
	if rest := s.text[s.pos:]; len(rest) >= blockSize {
		b = (*[blockSize]byte)(rest)
	} else {
		var tail [blockSize]byte
		for i := copy(tail[:], rest); i < blockSize; i++ {
			tail[i] = 0x80
		}
		b = &tail
	}
	if useAVX2 {
		classifyAVX2(b, &m)
	} else {
		m = classify(b)
	}
	m.trim()
	var starts uint64
	switch s.grammar {
	case gpt2:
		starts = contractions(startsGPT2(&m), &m, b, false)
	case o200k:
		starts = startsO200k(&m, b)
	default:
		starts = contractions(startsLlama3(&m, mostDigits[s.grammar]), &m, b, true)
	}
	starts = certain(starts, &m) &^ 1 // pos itself ends nothing

	n := 0
	ends = ends[:blockSize]
	for ; starts != 0; starts &= starts - 1 {
		ends[n&(blockSize-1)] = s.pos + bits.TrailingZeros64(starts) // n stays below 64; so the compiler knows
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

// startsLlama3 marks where pretokens of the cl100k and Llama 3 patterns and their like start, but for contractions. They
// differ in the number of digits, and in white space at the end of a text, which is never certain in a block.
func startsLlama3(m *masks, digits int) uint64 {
	white := m.space | m.newline
	odd := ^(m.letter | m.number | white) & below(m.limit)
	ink := m.letter | m.number | odd

	// A single odd character that starts a pretoken joins the letters after it, as any white space but newlines does.
	odds := odd &^ (odd << 1) &^ (m.blank << 1)
	letters := m.letter &^ (m.letter << 1) &^ ((m.space | odds) << 1)
	starts := odds | letters | numbers(m.number, digits)

	// Newlines right after odd characters belong to them; what follows those newlines starts a pretoken.
	eaten := odd << 1 & m.newline
	afterEaten := (m.newline + eaten) &^ m.newline
	starts |= m.newline &^ (white << 1) &^ (odd << 1)

	return starts | whites(m, ink, afterEaten)
}

// whites marks where white space other than newlines starts a pretoken; ink is all that is not white, afterEaten what
// follows newlines that belong to the characters before them.
func whites(m *masks, ink, afterEaten uint64) uint64 {
	// Its first character after ink, and its last character before ink.
	heads := m.space &^ (m.space << 1)
	starts := heads&(ink<<1|afterEaten) | m.space&(ink>>1)
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

// numbers marks where pretokens of up to most digits start.
func numbers(number uint64, most int) uint64 {
	if most == 1 {
		return number
	}
	starts := number &^ (number << 1)
	later := number & (number << 1) & (number << 2)
	if most == 3 {
		later &= number << 3
	}
	for later != 0 {
		b := later & -later
		starts |= b
		later &^= b | b<<1
		if most == 3 {
			later &^= b << 2
		}
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
		} else if i+3 > m.limit {
			starts &= below(i + 1) // it could be 're yet
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

// trim sets limit and clears the bits from there on.
func (m *masks) trim() {
	m.limit = bits.TrailingZeros64(m.foreign)
	in := below(m.limit)
	m.letter &= in
	m.number &= in
	m.space &= in
	m.blank &= in
	m.newline &= in
	m.apostrophe &= in
}
