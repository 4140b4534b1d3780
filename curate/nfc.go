package curate

import (
	"bytes"

	"anneal/internal/nfc"

	"golang.org/x/text/unicode/norm"
)

// NFC composes characters (Unicode Standard Annex 15, form C): an e and a combining accent become é, so that one word
// has one spelling and one tokenization. Bytes that are not UTF-8 pass through. It drops nothing. Put it after
// normalize. Not for text in which the choice of code points matters, such as tests of Unicode software.
//
//	changed  1 if the text was not composed already; no bound of its own
func NFC() *Filter {
	return &Filter{Name: "nfc", Bounds: []Bound{unbounded("changed")}, measure: func(d *Doc, values []float64) {
		if norm.NFC.IsNormal(d.Text) {
			return
		}
		if text := nfc.Append(nil, d.Text); !bytes.Equal(text, d.Text) {
			d.SetText(text)
			values[0] = 1
		}
	}}
}
