package curate

// FineWeb drops lists and fragmented pages by the rules that FineWeb's authors found (Penedo et al. 2024, arXiv
// 2406.17557, section 3.6), as datatrove's FineWebQualityFilter does:
//
//	ended_lines      share of lines that end in sentence-terminal punctuation ≥ 0.12
//	short_lines      share of lines of at most 30 characters ≤ 0.67
//	duplicate_chars  characters in lines that occurred before, over those of the text but its line ends ≤ 0.01
//	newline_ratio    line ends over tokens ≤ 0.3
//
// Blank lines do not count, and white space at a line's end hides its punctuation. Not for code.
func FineWeb() *Filter {
	return &Filter{Name: "fineweb", Bounds: []Bound{
		atLeast("ended_lines", 0.12), atMost("short_lines", 0.67), atMost("duplicate_chars", 0.01),
		atMost("newline_ratio", 0.3),
	}, measure: func(d *Doc, values []float64) {
		l, w := d.lineFacts(), d.wordFacts()
		copy(values, []float64{
			ratio(l.ended, l.filled), ratio(l.short, l.filled), ratio(l.dupFilledChars, w.total-l.newlines),
			ratio(l.newlines, w.tokens),
		})
	}}
}
