package curate

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// C4 cleans lines and drops documents by the rules of C4 (Raffel et al. 2020, arXiv 1910.10683, section 2.2), as datatrove's
// C4QualityFilter does. A line goes if one of its words has more than 1000 characters, if it does not end in . ? ! " ' or
// ends in "..." (unless anyEnd), if it has fewer than 3 words, or holds "javascript" or a phrase on cookies and terms of
// use. [1], [edit] and [citation needed] are cut out of the lines that stay. Words here are runs without white space. Then
//
//	lorem_ipsum     lines with "lorem ipsum" that would stay ≤ 0
//	curly_brackets  lines with "{" that would stay ≤ 0
//	sentences       in the lines that stay ≥ 5: ends in . ? or !, before quotes and brackets, before white space
//	lines_dropped   share of the lines; no bound of its own
//
// Letters are compared without case in ASCII only. The list of bad words is not part of it. Not for code, which it empties.
func C4(anyEnd bool) *Filter {
	var out []byte
	return &Filter{Name: "c4", Bounds: []Bound{
		atMost("lorem_ipsum", 0), atMost("curly_brackets", 0), atLeast("sentences", 5), unbounded("lines_dropped"),
	}, measure: func(d *Doc, values []float64) {
		suspects, javascript, end := d.wordFacts().suspects, mayHoldJavascript(d.Text), 0
		out = out[:0]
		lines, kept, sentences := 0, 0, 0
		for line := range bytes.Lines(d.Text) {
			lines++
			end += len(line)
			suspect := false
			for len(suspects) > 0 && int(suspects[0]) < end {
				suspect, suspects = true, suspects[1:]
			}
			line = bytes.TrimSpace(line)
			if longWord(line) {
				continue
			}
			words := fieldsAtLeast(line, c4Words)
			start := len(out)
			out = appendUncited(out, line)
			line = out[start:]
			switch {
			case !anyEnd && !endsC4(line), !words:
				out = out[:start]
				continue
			case suspect && containsFold(line, "lorem ipsum"):
				values[0]++
			case javascript && containsFold(line, "javascript"):
				out = out[:start]
				continue
			case bytes.IndexByte(line, '{') >= 0:
				values[1]++
			case suspect && policy(line):
				out = out[:start]
				continue
			}
			kept++
			sentences += countSentences(line)
			out = append(out, '\n')
		}
		values[2], values[3] = float64(sentences), ratio(lines-kept, lines)
		if text := bytes.TrimSpace(out); !bytes.Equal(text, d.Text) {
			d.SetText(append([]byte(nil), text...))
		}
	}}
}

const (
	c4Words      = 3
	c4WordLength = 1000
)

var policies = [...]string{"terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies"}

func policy(line []byte) bool {
	for _, p := range policies {
		if containsFold(line, p) {
			return true
		}
	}
	return false
}

// containsFold says whether line holds phrase, of lower-case ASCII, in any case.
func containsFold(line []byte, phrase string) bool {
	for i := 0; i+len(phrase) <= len(line); i++ {
		j := 0
		for j < len(phrase) && (line[i+j] == phrase[j] || line[i+j]|0x20 == phrase[j] && 'A' <= line[i+j] && line[i+j] <= 'Z') {
			j++
		}
		if j == len(phrase) {
			return true
		}
	}
	return false
}

func longWord(line []byte) bool {
	if len(line) <= c4WordLength {
		return false
	}
	for f := range bytes.FieldsSeq(line) {
		if len(f) > c4WordLength && utf8.RuneCount(f) > c4WordLength {
			return true
		}
	}
	return false
}

// fieldsAtLeast says whether line has n runs without white space.
func fieldsAtLeast(line []byte, n int) bool {
	inside := false
	for i, c := range line {
		k := class[c]
		if k == wide && utf8.RuneStart(c) {
			if r, _ := utf8.DecodeRune(line[i:]); unicode.IsSpace(r) {
				k = space
			}
		}
		switch {
		case k == space:
			inside = false
		case !inside && (k != wide || utf8.RuneStart(c)):
			inside = true
			if n--; n == 0 {
				return true
			}
		}
	}
	return false
}

// mayHoldJavascript says whether text has the first three letters of it somewhere.
func mayHoldJavascript(text []byte) bool {
	for _, j := range []byte("jJ") {
		for rest := text; ; {
			i := bytes.IndexByte(rest, j)
			if i < 0 || i+2 >= len(rest) {
				break
			}
			if rest[i+1]|0x20 == 'a' && rest[i+2]|0x20 == 'v' {
				return true
			}
			rest = rest[i+1:]
		}
	}
	return false
}

func endsC4(line []byte) bool {
	return len(line) > 0 && bytes.IndexByte([]byte(`.?!"'`), line[len(line)-1]) >= 0 && !bytes.HasSuffix(line, []byte("..."))
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

// countSentences counts the ends of sentences in a line without white space around it, and what follows the last one.
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
	return &Filter{Name: "c4_paragraphs", Bounds: []Bound{atLeast("third_longest_line", 200)}, measure: func(d *Doc, values []float64) {
		values[0] = float64(d.lineFacts().top[2])
	}}
}
