package extract

import (
	"bytes"
	"unicode/utf8"
)

// kinds of bytes
const (
	other = iota
	space
	perhapsSpace // first byte of a space that is not ASCII
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
	chars, words := 0, false // chars counts as jusText does in links: each text with the white space around it
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
			if kind := kindOf[s[i]]; kind == other ||
				s[i] == ' ' && i > from && i+1 < len(s) && kindOf[s[i+1]] == other ||
				kind == perhapsSpace && spaceAt(s[i:]) == 0 {
				i++
				continue
			}
			break
		}
		if i > from {
			n := utf8.RuneCount(s[from:i])
			if d.p.chars == 0 {
				d.p.heading, d.p.item, d.first = d.inside[heading] > 0, d.first, false
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
	case keep && d.p.chars == 0: // no blank lines at the start, but keep the indentation
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

// spaceAt returns the length of the white space character at the start of s, or 0.
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

// isSpace reports whether a character that is not ASCII is white space.
func isSpace(r rune) bool {
	switch r {
	case 0x85, 0xa0, 0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000:
		return true
	}
	return 0x2000 <= r && r <= 0x200a
}
