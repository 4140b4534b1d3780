package tokenizer

// splitter cuts a text into pretokens, in order and without gaps.
type splitter interface {
	// reset starts a new text.
	reset(text []byte)
	// next writes the end offsets of the following pretokens to ends, as many as fit, and returns their number; 0
	// means the end of the text.
	next(ends []int) int
}

// grammar identifies a hand-written splitter.
type grammar uint8

const (
	gpt2 grammar = iota
	cl100k
	llama3
	qwen2
	nanochat
	o200k
)

// mostDigits is the largest number of digits in a pretoken, except for gpt2, where it is unlimited.
var mostDigits = [...]int{cl100k: 3, llama3: 3, qwen2: 1, nanochat: 2, o200k: 3}

// handSplitter finds pretokens of the known patterns in linear time: blocks of 64 ASCII bytes at once with bit masks
// (block.go), all other text one pretoken at a time.
type handSplitter struct {
	grammar grammar
	classes *runeClasses
	text    []byte
	pos     int
}

func newHandSplitter(g grammar) *handSplitter {
	if g == o200k {
		return &handSplitter{grammar: g, classes: caseTable()}
	}
	return &handSplitter{grammar: g, classes: classTable()}
}

func (s *handSplitter) reset(text []byte) { s.text, s.pos = text, 0 }

func (s *handSplitter) next(ends []int) int {
	n := 0
	for s.pos < len(s.text) && n+blockSize <= len(ends) {
		found := s.block(ends[n:])
		n += found
		if found > 0 {
			s.pos = ends[n-1]
			continue
		}
		// The pretoken at pos does not end within the ASCII bytes of its block. Continue here while the text is not
		// ASCII, because blocks would be short.
		for s.pos < len(s.text) && n < len(ends) {
			s.pos = s.one(s.pos)
			ends[n] = s.pos
			n++
			if s.pos+1 >= len(s.text) || s.text[s.pos]|s.text[s.pos+1] < 0x80 {
				break
			}
		}
	}
	return n
}

// one returns the end of the pretoken that starts at i < len(text).
func (s *handSplitter) one(i int) int {
	if s.grammar == o200k {
		return s.oneO200k(i)
	}
	if s.text[i] == '\'' {
		if n := contraction(s.text[i:], s.grammar != gpt2); n > 0 {
			return i + n
		}
	}
	if s.grammar == gpt2 {
		return s.oneGPT2(i)
	}
	return s.oneLlama3(i)
}

// oneGPT2 follows the pattern ` ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`.
func (s *handSplitter) oneGPT2(i int) int {
	j := i
	if s.text[i] == ' ' && i+1 < len(s.text) {
		j = i + 1
	}
	if c, n := s.classes.at(s.text, j); c != space && c != newline {
		return s.run(c, j+n)
	}
	end, _, last := s.spaces(i)
	if end < len(s.text) && last > i {
		return last
	}
	return end
}

// oneLlama3 follows the pattern
// `[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`; cl100k has `\s++$` before
// `\s*[\r\n]`, qwen2 and nanochat have fewer digits.
func (s *handSplitter) oneLlama3(i int) int {
	text := s.text
	c, n := s.classes.at(text, i)
	j := i + n
	switch c {
	case letter:
		return s.run(letter, j)
	case number:
		return s.digits(j)
	}
	after, width := other, 0 // class after the first character
	if j < len(text) {
		after, width = s.classes.at(text, j)
	}
	if c != newline && width > 0 && after == letter {
		return s.run(letter, j+width)
	}
	if c == other || text[i] == ' ' && width > 0 && after == other {
		j = s.run(other, j)
		for j < len(text) && (text[j] == '\r' || text[j] == '\n') {
			j++
		}
		return j
	}
	return s.white(i)
}

// digits returns the end of the digits, given that one precedes i.
func (s *handSplitter) digits(i int) int {
	for k := 1; k < mostDigits[s.grammar] && i < len(s.text); k++ {
		c, n := s.classes.at(s.text, i)
		if c != number {
			break
		}
		i += n
	}
	return i
}

// white follows `\s*[\r\n]+|\s+(?!\S)|\s+`, for cl100k with `\s++$` before it.
func (s *handSplitter) white(i int) int {
	end, line, last := s.spaces(i)
	switch {
	case end == len(s.text) && (s.grammar == cl100k || line == 0):
		return end
	case line > 0:
		return line
	case last > i:
		return last
	}
	return end
}

// run returns the end of the run of class c that continues at i.
func (s *handSplitter) run(c class, i int) int {
	for i < len(s.text) {
		d, n := s.classes.at(s.text, i)
		if d != c {
			break
		}
		i += n
	}
	return i
}

// spaces returns the end of the run of white space at i, the offset after its last newline (0 without one), and the
// start of its last character.
func (s *handSplitter) spaces(i int) (end, line, last int) {
	end = i
	for end < len(s.text) {
		c, n := s.classes.at(s.text, end)
		if c != space && c != newline {
			break
		}
		last = end
		end += n
		if c == newline {
			line = end
		}
	}
	return end, line, last
}

// contraction returns the length of 's, 't, 'm, 'd, 're, 've or 'll at the start of text (which begins with the
// apostrophe), or 0. With fold, case is ignored by Unicode rules: ſ (U+017F) is an s.
func contraction(text []byte, fold bool) int {
	var b [3]byte
	copy(b[:], text)
	c, d := b[1], b[2]
	if fold {
		if c == 0xc5 && d == 0xbf {
			return 3
		}
		c, d = asciiLower(c), asciiLower(d)
	}
	switch c {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if d == 'e' {
			return 3
		}
	case 'l':
		if d == 'l' {
			return 3
		}
	}
	return 0
}

func asciiLower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
