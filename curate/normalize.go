package curate

import (
	"bytes"
	"unicode/utf8"
)

// Normalize cleans the form of a text and drops only empty documents. CR LF and CR become LF. Control characters
// except tab and LF, byte order marks and soft hyphens are removed. No-break spaces become spaces. White space before
// a line end is removed. Three or more line ends in a row become two (the cap of RefinedWeb, Penedo et al. 2023, arXiv
// 2306.01116). Bytes that are not UTF-8 become U+FFFD. White space around the text is removed. A second application
// changes nothing.
//
// Not for formats in which white space at line ends has a meaning. The stage nfc does Unicode composition.
//
//	bytes  of what is left ≥ 1
func Normalize() *Filter {
	var out []byte
	return &Filter{Name: "normalize", Bounds: []Bound{atLeast("bytes", 1)}, measure: func(d *Doc, values []float64) {
		whole := d.Text
		if text := bytes.Trim(whole, " \t\n"); len(text) < len(whole) {
			d.SetText(text)
		}
		if !d.masks().normal() {
			out = appendNormal(out, whole)
			d.SetText(bytes.Clone(out))
			out = reusable(out)
		}
		values[0] = float64(len(d.Text))
	}}
}

// usual reports whether a character outside ASCII is kept as it is.
func usual(r rune) bool { return r > 0xa0 && r != '\u00ad' && r != '\ufeff' }

func appendNormal(out, text []byte) []byte {
	ends := 2 // line ends at the end of out; at the start of the text none are wanted
	trim := func() {
		for len(out) > 0 && (out[len(out)-1] == ' ' || out[len(out)-1] == '\t') {
			out = out[:len(out)-1]
		}
	}
	for i := 0; i < len(text); {
		c := text[i]
		i++
		switch {
		case c == '\r' && i < len(text) && text[i] == '\n':
		case c == '\n' || c == '\r':
			trim()
			if ends < 2 && len(out) > 0 {
				out = append(out, '\n')
			}
			ends++
		case c == ' ' || c == '\t':
			out = append(out, c)
		case c < ' ' || c == 0x7f:
		case c < utf8.RuneSelf:
			out = append(out, c)
			ends = 0
		default:
			r, size := utf8.DecodeRune(text[i-1:])
			switch {
			case r == '\u00a0':
				out = append(out, ' ')
			case usual(r):
				out = utf8.AppendRune(out, r)
				ends = 0
			}
			i += size - 1
		}
	}
	return bytes.Trim(out, " \t\n")
}
