package extract

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// paragraph is a piece of the text of a page.
type paragraph struct {
	from, to      uint32 // in divider.text
	chars, linked uint32 // characters with white space collapsed; those of them in links
	heading, item bool
	alone, class  class // by itself, and among the others
}

// maxOpen is how many open elements are remembered, as many as browsers do.
const maxOpen = 512

// maxToken is the most bytes of a tag, a comment, a script or a text between tags. Attributes of a tag take up to 16 times
// their length.
const maxToken = 4 << 20

// divider cuts a page into paragraphs.
type divider struct {
	paragraphs []paragraph
	text       []byte // of all paragraphs

	p      paragraph       // the present one
	gap    []byte          // white space behind it that is not yet in it
	broken bool            // a <br> came behind it
	lastBr bool            // nothing but white space came since a <br>
	first  bool            // no text came since the start of an item
	open   []element       // all but cells, edges and what is inline, from the outermost; at most maxOpen and one that is left out
	beyond int             // how many more there are
	opened [256]int        // how often each is in open
	inside [unseen + 1]int // how many of each role are
}

// divide reads a page in UTF-8.
func divide(page io.Reader, xhtml bool) (*divider, error) {
	d := &divider{}
	z := html.NewTokenizer(page)
	z.SetMaxBuf(maxToken)
	z.AllowCDATA(xhtml)
	for {
		switch kind := z.Next(); kind {
		case html.ErrorToken:
			d.finish()
			if err := z.Err(); err == html.ErrBufferExceeded {
				return nil, fmt.Errorf("a tag, script or text of more than %d bytes", maxToken)
			} else if err != io.EOF {
				return nil, err
			}
			return d, nil
		case html.TextToken:
			if !d.leftOut() {
				d.write(z.Text())
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			e := elementOf[string(name)]
			empty := kind == html.SelfClosingTagToken && (xhtml || string(name) == "svg")
			if empty {
				z.NextIsNotRawText()
			}
			if elements[e].role == link && !hasHref(z, more) {
				e = 0
			}
			d.start(e)
			if empty {
				d.end(e)
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			d.end(elementOf[string(name)])
		}
	}
}

func hasHref(z *html.Tokenizer, more bool) bool {
	for more {
		var key []byte
		if key, _, more = z.TagAttr(); string(key) == "href" {
			return true
		}
	}
	return false
}

func (d *divider) start(e element) {
	role := elements[e].role
	switch role {
	case inline:
		d.lastBr = d.lastBr && d.leftOut()
		return
	case unseen:
		d.push(e)
		return
	case lineBreak:
		if d.leftOut() {
			return
		}
		if d.inside[pre] > 0 {
			d.gap = append(d.gap, '\n')
		} else if d.lastBr {
			d.cut()
		}
		d.lastBr, d.broken = true, true
		return
	case link:
		d.lastBr = false
		if d.top() == e {
			d.pop()
		}
		d.push(e)
		return
	}
	d.cut()
	d.closeParagraph(role)
	switch role {
	case cell:
		d.first = true
	case listing, heading, para:
		if elements[d.top()].role == heading { // without an end tag
			d.pop()
		}
	}
	if role != cell && role != edge {
		d.push(e)
	}
}

func (d *divider) end(e element) {
	switch elements[e].role {
	case inline, lineBreak:
		return
	case link:
		d.endLink(e)
		return
	case cell, edge:
		d.cut()
		d.closeParagraph(cell)
		return
	}
	switch {
	case leavesOut(e) && d.top() == e:
		d.pop()
	case d.beyond > 0:
		d.beyond--
	case d.opened[e] > 0:
		for d.pop() != e {
		}
	}
	if elements[e].role != unseen {
		d.cut()
	}
	if elements[e].role == listing {
		d.first = false
	}
}

func leavesOut(e element) bool { return elements[e].role >= unread }

// leftOut says whether what comes is.
func (d *divider) leftOut() bool { return d.inside[unread]+d.inside[unseen] > 0 }

// closeParagraph closes the innermost <p>, unless it is around another block, and the links in it: what cuts ends it. Cells and
// edges end links in any case, for no link is around them.
func (d *divider) closeParagraph(by role) {
	n := len(d.open)
	for n > 0 && elements[d.open[n-1]].role == link {
		n--
	}
	if n > 0 && elements[d.open[n-1]].role == para {
		n--
	} else if by != cell && by != edge {
		return
	}
	for len(d.open) > n {
		d.pop()
	}
}

// endLink closes the innermost link, and nothing in it.
func (d *divider) endLink(e element) {
	if d.opened[e] == 0 {
		return
	}
	for i := len(d.open) - 1; ; i-- {
		if d.open[i] == e {
			d.open = slices.Delete(d.open, i, i+1)
			d.opened[e]--
			d.inside[link]--
			return
		}
	}
}

// top is the innermost open element, 0 if none is.
func (d *divider) top() element {
	if len(d.open) == 0 {
		return 0
	}
	return d.open[len(d.open)-1]
}

func (d *divider) push(e element) {
	if len(d.open) >= maxOpen && (!leavesOut(e) || d.leftOut()) {
		if elements[e].role != link {
			d.beyond++
		}
		return
	}
	d.open = append(d.open, e)
	d.opened[e]++
	d.inside[elements[e].role]++
}

func (d *divider) pop() element {
	e := d.top()
	d.open = d.open[:len(d.open)-1]
	d.opened[e]--
	d.inside[elements[e].role]--
	return e
}

// cut ends the present paragraph. What is left out does not.
func (d *divider) cut() {
	if !d.leftOut() {
		d.finish()
	}
}

func (d *divider) finish() {
	if d.p.chars > 0 {
		d.p.to = uint32(len(d.text))
		d.paragraphs = append(d.paragraphs, d.p)
	}
	d.p = paragraph{from: uint32(len(d.text))}
	d.gap, d.broken = d.gap[:0], false
}

// kinds of bytes
const (
	other = iota
	space
	perhapsSpace // begins a space that is not ASCII
	null
)

var kindOf = func() (kinds [256]uint8) {
	for _, c := range " \t\n\v\f\r" {
		kinds[c] = space
	}
	for _, c := range []byte{0xc2, 0xe1, 0xe2, 0xe3} {
		kinds[c] = perhapsSpace
	}
	kinds[0] = null
	return kinds
}()

// write appends text.
func (d *divider) write(s []byte) {
	keep := d.inside[pre] > 0
	chars, words := 0, false // as jusText counts the characters of links: each text with the white space around it
	for i := 0; i < len(s); {
		from := i
		for i < len(s) {
			n := spaceAt(s[i:])
			if n == 0 {
				break
			}
			i += n
		}
		if i > from {
			chars++
			if keep {
				d.gap = append(d.gap, s[from:i]...)
			} else if len(d.gap) == 0 {
				d.gap = append(d.gap, ' ')
			}
		}
		from = i
		for i < len(s) { // words with single blanks between them
			if kind := kindOf[s[i]]; kind == other || s[i] == ' ' && i > from && i+1 < len(s) && kindOf[s[i+1]] == other ||
				kind == perhapsSpace && spaceAt(s[i:]) == 0 {
				i++
				continue
			}
			break
		}
		if i > from {
			n := utf8.RuneCount(s[from:i])
			if d.p.chars == 0 {
				d.p.heading, d.p.item, d.first = d.inside[heading] > 0, d.first || keep, false
			}
			d.flush(keep)
			d.text = append(d.text, s[from:i]...)
			d.p.chars += uint32(n)
			chars += n
			words = true
		}
		for i < len(s) && s[i] == 0 {
			i++
		}
	}
	if words {
		d.lastBr = false
		if d.inside[link] > 0 {
			d.p.linked += uint32(chars)
		}
	}
}

// flush writes the white space before a word.
func (d *divider) flush(keep bool) {
	if len(d.gap) == 0 && !d.broken {
		return
	}
	switch {
	case keep && d.p.chars == 0: // no blank lines at the start, but the indentation
		d.text = append(d.text, d.gap[bytes.LastIndexByte(d.gap, '\n')+1:]...)
	case d.p.chars == 0:
	case keep:
		d.text = append(d.text, d.gap...)
		d.p.chars++
	case d.broken:
		d.text = append(d.text, '\n')
		d.p.chars++
	default:
		d.text = append(d.text, ' ')
		d.p.chars++
	}
	d.gap, d.broken = d.gap[:0], false
}

// spaceAt is the length of the white space that s begins with: one character, or none.
func spaceAt(s []byte) int {
	switch kindOf[s[0]] {
	case space:
		return 1
	case perhapsSpace:
		if r, n := utf8.DecodeRune(s); isSpace(r) {
			return n
		}
	}
	return 0
}

// isSpace says whether a character that is not ASCII is white space.
func isSpace(r rune) bool {
	switch r {
	case 0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000:
		return true
	}
	return 0x2000 <= r && r <= 0x200a
}
