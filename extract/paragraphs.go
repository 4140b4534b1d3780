package extract

import (
	"fmt"
	"io"
	"slices"

	"golang.org/x/net/html"
)

// paragraph is a paragraph of a page.
type paragraph struct {
	from, to      uint32 // positions in divider.text
	chars, linked uint32 // characters with white space collapsed, and how many of them are in links
	heading, item bool
	alone, class  class // class by content, and by context
}

// maxOpen is the number of open elements that are remembered, as in browsers.
const maxOpen = 512

// maxToken is the largest size of a tag, a comment, a script or a text between tags. Attributes of a tag take up to
// 16 times their length.
const maxToken = 4 << 20

// divider divides a page into paragraphs.
type divider struct {
	paragraphs []paragraph
	text       []byte // of all paragraphs

	p      paragraph // the current one
	gap    []byte    // white space behind p that has not been added yet
	broken bool      // a <br> follows p
	lastBr bool      // only white space since a <br>
	first  bool      // no text since the start of an item
	// open elements except cells, edges and inline ones, outermost first; at most maxOpen and one that is left out
	open   []element
	beyond int             // number of further open elements
	opened [256]int        // how often each element is in open
	inside [unseen + 1]int // how many open elements have each role
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
				return nil, fmt.Errorf("a tag, script or text exceeds %d bytes", maxToken)
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
			// A page's SVG is XML, in which <title/> and <style/> end at once.
			empty := kind == html.SelfClosingTagToken && (xhtml || string(name) == "svg" || d.opened[svg] > 0)
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
		if elements[d.top()].role == heading { // the end tag was missing
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

// leftOut reports whether the current position is inside an element that is left out.
func (d *divider) leftOut() bool { return d.inside[unread]+d.inside[unseen] > 0 }

// closeParagraph closes the innermost <p>, unless it is around another block, together with the links in it. Cells
// and edges always close links, because a link cannot contain them.
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

// endLink closes the innermost link, but not the elements in it.
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

// top returns the innermost open element, or 0 if there is none.
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

// cut ends the current paragraph. It does nothing inside an element that is left out.
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
