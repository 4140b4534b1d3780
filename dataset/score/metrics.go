package score

// A Metric scores texts.
type Metric struct {
	Name  string
	About string // meaning of the number
	// New returns a scoring function for one goroutine; it may keep buffers between calls.
	New func() func(text []byte) float64
}

// Metrics are the metrics that need only the text.
var Metrics = []Metric{
	{"compression", "bytes after DEFLATE at level 6 / bytes", NewCompression},
	{"mtld", "lexical diversity: mean length in words of stretches with a type-token ratio above 0.72",
		func() func([]byte) float64 { return MTLD }},
	{"flesch", "Flesch reading ease: 206.835 - 1.015 words/sentence - 84.6 syllables/word",
		func() func([]byte) float64 { return Flesch }},
}

// Named returns the metric with the given name.
func Named(name string) (Metric, bool) {
	for _, m := range Metrics {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}
