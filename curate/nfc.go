package curate

import "golang.org/x/text/unicode/norm"

// NFC composes characters (Unicode Standard Annex 15, form C): an e and a combining accent become é, so that one word has one
// spelling and one tokenization. Text that is not UTF-8 passes through. It drops nothing. Put it behind normalize; not for text in which the
// spelling in code points matters, such as tests of Unicode software.
//
//	changed  1 if the text was not composed already; no bound of its own
func NFC() *Filter {
	return &Filter{Name: "nfc", Bounds: []Bound{unbounded("changed")}, measure: func(d *Doc, values []float64) {
		if !norm.NFC.IsNormal(d.Text) {
			d.SetText(norm.NFC.Bytes(d.Text))
			values[0] = 1
		}
	}}
}
