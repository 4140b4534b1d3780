package curate

import (
	"fmt"
	"math"

	"anneal/dedup"
)

// kind is a kind of stage, with its name in pipeline files.
type kind struct {
	name    string
	bounds  []Bound  // published bounds of a Filter; a pipeline may change them
	rules   []string // rules of a stage that is not a Filter
	options []option // its other keys
	many    bool     // it may occur more than once; the second is called NAME_2

	// load reads the stage's files from disk, once for all goroutines. The function that it returns makes the stage of
	// one goroutine.
	load func(o given) (func() Stage, error)

	// compare replaces load in a stage that needs all documents that reach it.
	compare func(o given) (*dedup.Options, error)
}

// kinds lists all stages. A new stage is a line here.
var kinds = []kind{
	filter(Normalize),
	filter(GopherQuality),
	filter(GopherRepetition),
	{name: "c4", bounds: C4(false).Bounds, options: []option{{name: "terminal_punctuation", value: true}},
		load: func(o given) (func() Stage, error) {
			anyEnd := !o.truth("terminal_punctuation")
			return func() Stage { return C4(anyEnd) }, nil
		}},
	filter(C4Paragraphs),
	filter(FineWeb),
	filter(Code),
	filter(PII),
	filter(Identifiers),
	filter(NFC),
	badWords,
	decontaminate,
	language,
	quality,
	{name: "dedup", rules: compareRules, many: true, compare: compareOptions, options: []option{
		{name: "exact", value: []string{"document"}, among: []string{"document", "paragraph", "line", "none"}},
		{name: "min_words", value: 3.0},
		{name: "near", value: true}, {name: "words", value: 5.0}, {name: "bands", value: 14.0},
		{name: "rows", value: 8.0}, {name: "verify", value: 0.0}, {name: "ngrams", value: false},
		{name: "ngram_words", value: 13.0}, {name: "ngram_share", value: 0.8}, {name: "ngram_mib", value: 256.0},
	}},
}

// filter is a stage that has only bounds.
func filter(make func() *Filter) kind {
	f := make()
	return kind{name: f.Name, bounds: f.Bounds, load: func(given) (func() Stage, error) {
		return func() Stage { return make() }, nil
	}}
}

// option is a key of a stage other than its bounds.
type option struct {
	name     string
	value    any      // the default, of the option's type: bool, float64, string or []string
	required bool     // the file must give one
	among    []string // if not nil, the valid strings
	files    bool     // the strings are paths relative to the pipeline's directory; the hash covers the files' bytes
}

// given holds all options of a stage, as the pipeline says or with their defaults.
type given map[string]any

func (g given) truth(name string) bool     { return g[name].(bool) }
func (g given) number(name string) float64 { return g[name].(float64) }
func (g given) text(name string) string    { return g[name].(string) }
func (g given) texts(name string) []string { return g[name].([]string) }

// whole reads options that must be whole numbers from 1 to most.
func (g given) whole(most int, names []string, to ...*int) error {
	for i, name := range names {
		v := g.number(name)
		if !(v >= 1 && v <= float64(most) && v == math.Trunc(v)) {
			return fmt.Errorf("%s is %.10g\n  try a whole number from 1 to %d", name, v, most)
		}
		*to[i] = int(v)
	}
	return nil
}

// keys returns the names that a pipeline may give under the stage.
func (k *kind) keys() (names []string) {
	for _, b := range k.bounds {
		names = append(names, b.Name)
	}
	for _, o := range k.options {
		names = append(names, o.name)
	}
	return names
}

// kindOf finds a stage by its name, or returns nil.
func kindOf(name string) *kind {
	for i := range kinds {
		if kinds[i].name == name {
			return &kinds[i]
		}
	}
	return nil
}

// StageNames lists the stages that a pipeline may have.
func StageNames() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}
