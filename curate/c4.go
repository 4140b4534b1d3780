package curate

import (
	"bytes"
	"math/bits"
	"unicode/utf8"
)

// C4 cleans lines and drops documents by the rules of C4 (Raffel et al. 2020, arXiv 1910.10683, section 2.2), as
// datatrove's C4QualityFilter does. A line is dropped if one of its words has more than 1000 characters, if it does
// not end in . ? ! " ' or ends in "..." (unless anyEnd), if it has fewer than 3 words, or if it holds "javascript" or
// a phrase on cookies and terms of use. [1], [edit] and [citation needed] are cut out of the remaining lines. Words
// here are runs without white space. Then
//
//	lorem_ipsum     lines with "lorem ipsum" that would stay ≤ 0
//	curly_brackets  lines with "{" that would stay ≤ 0
//	sentences       in the lines that stay ≥ 5: ends in . ? or !, before quotes and brackets, before white space
//	lines_dropped   share of the lines; no bound of its own
//
// Letters are compared without case in ASCII only. The list of bad words is not part of it. Not for code, of which it
// leaves nothing.
func C4(anyEnd bool) *Filter {
	var c c4
	return &Filter{Name: "c4", Bounds: []Bound{
		atMost("lorem_ipsum", 0), atMost("curly_brackets", 0), atLeast("sentences", 5), unbounded("lines_dropped"),
	}, measure: func(d *Doc, values []float64) {
		c = c4{anyEnd: anyEnd, text: d.Text, masks: d.masks(), out: c.out}
		start := 0
		for i := range c.masks.blocks {
			for ends := c.masks.blocks[i].newline; ends != 0; ends &= ends - 1 {
				end := blockSize*i + bits.TrailingZeros64(ends)
				c.line(start, end)
				start = end + 1
			}
		}
		if start < len(d.Text) {
			c.line(start, len(d.Text))
		}
		values[0], values[1], values[2] = float64(c.lorem), float64(c.curly), float64(c.sentences)
		values[3] = ratio(c.lines-c.kept, c.lines)
		if text, mine := c.result(); !bytes.Equal(text, d.Text) {
			if mine {
				text = bytes.Clone(text)
			}
			d.SetText(text)
		}
		c = c4{out: reusable(c.out)}
	}}
}

// c4 is the state of a pass over the lines of a text. Consecutive unchanged lines are copied together. If all kept
// lines are consecutive, nothing is copied.
type c4 struct {
	anyEnd bool
	text   []byte
	masks  *maskSet

	out      []byte
	from, to int // text that is kept but not copied yet; to is behind the LF

	lines, kept, sentences, lorem, curly int
}

func (c *c4) line(start, end int) {
	c.lines++
	from, to := trim(c.text, start, end)
	if from == to {
		return
	}
	odd, long, fields, sentences := c.look(from, to)
	if long && longWord(c.text[from:to]) {
		return
	}
	if odd {
		c.slow(c.text[from:to], fields)
		return
	}
	if fields < c4Words || !c.anyEnd && !endsC4(c.text[from:to]) {
		return
	}
	c.kept++
	c.sentences += sentences
	if from != c.to {
		c.flush()
		c.from = from
	}
	c.to = to + 1
}

// look reads the masks of a line without surrounding white space. It returns whether only slow can judge the line,
// whether a word may be too long, the number of runs without white space, and the number of sentences, as in
// countSentences.
func (c *c4) look(from, to int) (odd, long bool, fields, sentences int) {
	ink, mark, carry := uint64(0), uint64(0), uint64(0) // of the block before: its last byte; a carry of the sum
	unbroken := 0                                       // blocks in a row without white space
	for k := from / blockSize; k <= (to-1)/blockSize; k++ {
		b, in := &c.masks.blocks[k], within(k, from, to)
		odd = odd || b.odd&in != 0
		runs := in &^ b.space
		fields += bits.OnesCount64(runs &^ (runs<<1 | ink))
		ink = runs >> 63
		if unbroken++; b.space&^b.control != 0 {
			unbroken = 0
		}
		long = long || unbroken >= c4WordLength/blockSize-2

		// A sentence ends behind a mark, and behind the quotes and brackets that follow the mark.
		marks, closers := b.mark&in, b.closer&in
		behind := marks<<1 | mark
		mark = marks >> 63
		sum, out := bits.Add64(closers, behind&closers, carry)
		carry = out
		sentences += bits.OnesCount64((behind | sum) &^ closers & in & b.space &^ b.foreign)
	}
	return odd, long, fields, sentences + 1 // the line's end ends the last
}

// slow handles a line without surrounding white space that has a bracket or may have a phrase.
func (c *c4) slow(line []byte, fields int) {
	c.flush()
	start := len(c.out)
	c.out = appendUncited(c.out, line)
	line = c.out[start:]
	lorem, javascript, policy := findPhrases(line)
	switch {
	case !c.anyEnd && !endsC4(line), fields < c4Words, javascript && !lorem:
		c.out = c.out[:start]
		return
	case lorem:
		c.lorem++
	case bytes.IndexByte(line, '{') >= 0:
		c.curly++
	case policy:
		c.out = c.out[:start]
		return
	}
	c.kept++
	c.sentences += countSentences(line)
	c.out = append(c.out, '\n')
}

// flush copies the kept lines.
func (c *c4) flush() {
	if c.to > c.from {
		c.out = append(append(c.out, c.text[c.from:c.to-1]...), '\n')
	}
	c.from, c.to = 0, 0
}

// result returns the remaining text, and whether it is in memory that the next document needs.
func (c *c4) result() (text []byte, mine bool) {
	if len(c.out) == 0 && c.to > c.from {
		return c.text[c.from : c.to-1], false
	}
	c.flush()
	return bytes.TrimSpace(c.out), true
}

const (
	c4Words      = 3
	c4WordLength = 1000
)

// c4Phrase is a phrase that C4 looks for, in lower case, with the position of three letters in it that are rare
// elsewhere.
type c4Phrase struct {
	text string
	at   int
}

var c4Phrases = [...]c4Phrase{
	{"lorem ipsum", 7}, {"javascript", 0}, {"terms of use", 2}, {"privacy policy", 3}, {"cookie policy", 3},
	{"uses cookies", 8}, {"use of cookies", 10}, {"use cookies", 7},
}

// findPhrases reports which phrases a line holds, in any case: the first, the second, one of the others.
func findPhrases(line []byte) (lorem, javascript, policy bool) {
	for i, c := range line {
		if spreadMarks[c]>>leadBit&1 == 0 || !tripleAt(line[i:]) {
			continue
		}
		for k, p := range c4Phrases {
			if from := i - p.at; from >= 0 && hasPrefixFold(line[from:], p.text) {
				lorem, javascript, policy = lorem || k == 0, javascript || k == 1, policy || k > 1
			}
		}
	}
	return lorem, javascript, policy
}

// containsFold reports whether line contains phrase, lower-case ASCII, ignoring case.
func containsFold(line []byte, phrase string) bool {
	for i := 0; i+len(phrase) <= len(line); i++ {
		if hasPrefixFold(line[i:], phrase) {
			return true
		}
	}
	return false
}

func hasPrefixFold(line []byte, phrase string) bool {
	if len(line) < len(phrase) {
		return false
	}
	j := 0
	for j < len(phrase) && (line[j] == phrase[j] || line[j]|0x20 == phrase[j] && 'A' <= line[j] && line[j] <= 'Z') {
		j++
	}
	return j == len(phrase)
}

func longWord(line []byte) bool {
	for f := range bytes.FieldsSeq(line) {
		if len(f) > c4WordLength && utf8.RuneCount(f) > c4WordLength {
			return true
		}
	}
	return false
}

func endsC4(line []byte) bool {
	return len(line) > 0 && bytes.IndexByte([]byte(`.?!"'`), line[len(line)-1]) >= 0 &&
		!bytes.HasSuffix(line, []byte("..."))
}

// appendUncited appends line without \[\d*\], [edit] and [citation needed].
func appendUncited(out, line []byte) []byte {
	for {
		i := bytes.IndexByte(line, '[')
		if i < 0 {
			return append(out, line...)
		}
		out = append(out, line[:i]...)
		line = line[i:]
		n := citation(line)
		if n == 0 {
			out = append(out, '[')
			n = 1
		}
		line = line[n:]
	}
}

// citation is the length of the citation that s starts with, or 0.
func citation(s []byte) int {
	for _, c := range []string{"[edit]", "[citation needed]"} {
		if len(s) >= len(c) && string(s[:len(c)]) == c {
			return len(c)
		}
	}
	i := 1
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	if i < len(s) && s[i] == ']' {
		return i + 1
	}
	return 0
}

// countSentences counts the sentences of a line without surrounding white space, including an incomplete last one.
func countSentences(line []byte) int {
	n, last := 0, 0
	for _, mark := range []byte(".?!") {
		for i := 0; ; {
			at := bytes.IndexByte(line[i:], mark)
			if at < 0 {
				break
			}
			i += at + 1
			end := i
			for end < len(line) && (line[end] == '"' || line[end] == '\'' || line[end] == ')' || line[end] == ']') {
				end++
			}
			if end == len(line) || class[line[end]] == space {
				n++
				last = max(last, end)
			}
		}
	}
	if last < len(line) {
		n++
	}
	return n
}

// C4Paragraphs is the page rule of mC4 (Xue et al. 2021, arXiv 2010.11934): three lines of at least 200 characters.
//
//	third_longest_line  characters of the third longest line ≥ 200
func C4Paragraphs() *Filter {
	return &Filter{Name: "c4_paragraphs", Bounds: []Bound{atLeast("third_longest_line", 200)},
		measure: func(d *Doc, values []float64) {
			values[0] = float64(d.lineFacts().top[2])
		}}
}
