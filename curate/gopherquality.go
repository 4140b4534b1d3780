package curate

// GopherQuality drops documents that do not look like prose (Rae et al. 2021, arXiv 2112.11446, appendix A.1), as
// datatrove's GopherQualityFilter does, with the tokens of words.go:
//
//	words             words in [50, 100000]
//	word_length       mean characters of a word in [3, 10]
//	hash_ratio        "#" over tokens ≤ 0.1
//	ellipsis_ratio    "..." and "…" over tokens ≤ 0.1
//	bullet_lines      share of lines that start with • or - ≤ 0.9
//	ellipsis_lines    share of lines that end in an ellipsis ≤ 0.3
//	alpha_words       share of tokens with a letter ≥ 0.8; symbols count among the tokens
//	stop_words        distinct words of {the, be, to, of, and, that, have, with}, in lower case ≥ 2
//
// Made for English prose: not for code, tables or other languages (set stop_words to {min: 0} there).
func GopherQuality() *Filter {
	return &Filter{Name: "gopher_quality", Bounds: []Bound{
		between("words", 50, 100_000), between("word_length", 3, 10), atMost("hash_ratio", 0.1),
		atMost("ellipsis_ratio", 0.1), atMost("bullet_lines", 0.9), atMost("ellipsis_lines", 0.3),
		atLeast("alpha_words", 0.8), atLeast("stop_words", 2),
	}, measure: func(d *Doc, values []float64) {
		l, w, stop := d.lineFacts(), d.wordFacts(), d.tokenFacts().stop
		copy(values, []float64{
			float64(w.words), ratio(w.inWords, w.words), ratio(w.hashSign, w.tokens), ratio(w.ellipses, w.tokens),
			ratio(l.bullets, l.lines), ratio(l.ellipses, l.lines), ratio(w.alpha, w.tokens), float64(stop),
		})
	}}
}
