package tokenizer

import "math/bits"

// blockSize is the number of bytes classified at once: one bit each in a 64-bit mask.
const blockSize = 64

// masks has one bit per byte of a block for each class; bits from limit on are zero. The assembly depends on the
// order of the first seven fields.
type masks struct {
	letter, number uint64
	space          uint64 // white space except \r and \n
	blank          uint64 // the space character, also in space
	newline        uint64 // \r, \n
	apostrophe     uint64
	foreign        uint64 // not ASCII
	limit          int    // bytes before the first foreign one
}

// block finds the pretokens that can be determined from the next 64 bytes alone, and writes their ends; 0 means that
// there are none. pos must be the start of a pretoken. No state is carried between blocks: the last pretoken, whose
// end is unknown, starts the next block.
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
	if assembled {
		classifyAssembled(b, &m)
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
	starts = certain(starts, &m) &^ 1 // pos itself is not an end

	n := 0
	ends = ends[:blockSize]
	for ; starts != 0; starts &= starts - 1 {
		// n stays below 64; the mask removes the bounds check
		ends[n&(blockSize-1)] = s.pos + bits.TrailingZeros64(starts)
		n++
	}
	return n
}

// startsGPT2 marks the starts of pretokens of the GPT-2 pattern, without contractions.
func startsGPT2(m *masks) uint64 {
	white := m.space | m.newline
	odd := ^(m.letter | m.number | white) & below(m.limit)
	ink := m.letter | m.number | odd
	heads := m.letter&^(m.letter<<1) | m.number&^(m.number<<1) | odd&^(odd<<1)
	heads &^= m.blank << 1 // a blank belongs to the word after it
	// White space starts a pretoken, and its last character starts another.
	return heads | white&^(white<<1) | white&(ink>>1)
}

// startsLlama3 marks the starts of pretokens of the cl100k and Llama 3 patterns and similar ones, without
// contractions. They differ in the number of digits, and in white space at the end of a text, which is never certain
// within a block.
func startsLlama3(m *masks, digits int) uint64 {
	white := m.space | m.newline
	odd := ^(m.letter | m.number | white) & below(m.limit)
	ink := m.letter | m.number | odd

	// A single odd character at the start of a pretoken joins the letters after it, like white space other than
	// newlines.
	odds := odd &^ (odd << 1) &^ (m.blank << 1)
	letters := m.letter &^ (m.letter << 1) &^ ((m.space | odds) << 1)
	starts := odds | letters | numbers(m.number, digits)

	// Newlines directly after odd characters belong to them; a pretoken starts after those newlines.
	eaten := odd << 1 & m.newline
	afterEaten := (m.newline + eaten) &^ m.newline
	starts |= m.newline &^ (white << 1) &^ (odd << 1)

	return starts | whites(m, ink, afterEaten)
}

// whites marks the starts of pretokens at white space other than newlines. ink is everything that is not white space,
// afterEaten the positions after newlines that belong to the characters before them.
func whites(m *masks, ink, afterEaten uint64) uint64 {
	// Its first character after ink, and its last character before ink.
	heads := m.space &^ (m.space << 1)
	starts := heads&(ink<<1|afterEaten) | m.space&(ink>>1)
	// After a newline, white space starts a pretoken unless another newline follows it, because `\s*[\r\n]+` takes
	// all of it.
	if lines := heads & (m.newline << 1); lines != 0 {
		inner := m.space & (m.newline >> 1)
		if inner != 0 {
			lines &^= fillDown(inner, m.space)
		}
		starts |= lines
	}
	return starts
}

// numbers marks the starts of pretokens of up to most digits.
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

// fillDown spreads the bits of from towards lower positions as long as through has an unbroken run of ones.
func fillDown(from, through uint64) uint64 {
	for shift := 1; shift < blockSize; shift <<= 1 {
		from |= from >> shift & through
		through &= through >> shift
	}
	return from
}

// contractions adds the ends of 's, 're … to starts. An apostrophe opens a contraction if it starts a pretoken.
func contractions(starts uint64, m *masks, b *[blockSize]byte, fold bool) uint64 {
	odd := ^(m.letter | m.number | m.space | m.newline)
	for open := m.apostrophe &^ (odd<<1 | m.blank<<1) & (m.letter >> 1); open != 0; open &= open - 1 {
		i := bits.TrailingZeros64(open)
		if n := contraction(b[i:m.limit], fold); n > 0 {
			starts = starts&^(1<<(i+1)) | 1<<(i+n)
		} else if i+3 > m.limit {
			starts &= below(i + 1) // it may still become 're
		}
	}
	return starts
}

// certain removes the starts that bytes from limit on could change: those after the first character of white space
// that reaches the limit.
func certain(starts uint64, m *masks) uint64 {
	starts &= below(m.limit)
	reach := bits.Len64(^(m.space | m.newline) & below(m.limit)) // after the last ink
	return starts & below(reach+1)
}

// below returns a mask of bits 0 … n-1.
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
