package curate

// GopherRepetition drops documents that repeat themselves (Rae et al. 2021, arXiv 2112.11446, table A1), with
// datatrove's semantics:
//
//	duplicate_paragraphs, duplicate_paragraph_chars    ≤ 0.30, ≤ 0.20: repeated paragraphs, their characters
//	duplicate_lines, duplicate_line_chars              ≤ 0.30, ≤ 0.20
//	top_2_gram … top_4_gram                            ≤ 0.20, 0.18, 0.16: characters of the most frequent n-gram
//	duplicate_5_grams … duplicate_10_grams             ≤ 0.15, 0.14, 0.13, 0.12, 0.11, 0.10
//
// Each is a share of the characters of the text, but the first of each pair is a share of the number of lines or
// paragraphs. A repeated n-gram counts only if it begins after the end of the last one that counted, and n-grams
// inside a counted one are not remembered. N-grams are equal if their tokens are; datatrove joins the tokens and takes
// "a bc" for "ab c", which adds up to 0.004 to shares of source code. Memory: about 35 bytes for each token of a
// document, and at most 64 more for each token where a repeated 2-gram starts. Not for code and tables, which repeat
// by nature.
func GopherRepetition() *Filter {
	return &Filter{Name: "gopher_repetition", Bounds: []Bound{
		atMost("duplicate_paragraphs", 0.30), atMost("duplicate_paragraph_chars", 0.20),
		atMost("duplicate_lines", 0.30), atMost("duplicate_line_chars", 0.20),
		atMost("top_2_gram", 0.20), atMost("top_3_gram", 0.18), atMost("top_4_gram", 0.16),
		atMost("duplicate_5_grams", 0.15), atMost("duplicate_6_grams", 0.14), atMost("duplicate_7_grams", 0.13),
		atMost("duplicate_8_grams", 0.12), atMost("duplicate_9_grams", 0.11), atMost("duplicate_10_grams", 0.10),
	}, measure: func(d *Doc, values []float64) {
		l, w, g := d.lineFacts(), d.wordFacts(), d.gramFacts()
		copy(values, []float64{
			ratio(l.dupParagraphs, l.paragraphs), ratio(l.dupParagraphChars, w.total),
			ratio(l.dupPieces, l.pieces), ratio(l.dupPieceChars, w.total),
		})
		for n := 2; n <= 10; n++ {
			values[n+2] = ratio(g.top[min(n, 4)], w.total)
			if n > 4 {
				values[n+2] = ratio(g.dup[n], w.total)
			}
		}
	}}
}
