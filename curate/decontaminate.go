package curate

import (
	"fmt"
	"slices"

	"anneal/corpus"
	"anneal/dedup"
)

// Decontaminate drops documents that contain text of evaluation sets (Brown et al. 2020, arXiv 2005.14165, appendix
// C): a run of 13 words (NGram) that also occurs in an item of a set. Items of 8 (Shortest) to 12 words must occur as a
// whole; shorter items are too common to prove anything and are ignored. Words are compared in lower case, with digits
// as 0, so that layout, punctuation and numbers do not hide a copy. GPT-3 cut out 200 characters around a match; like
// most pipelines now, this one drops the document.
//
// Memory: about 24 bytes for each run of the sets. Not for sets whose items are quoted everywhere, such as the text of
// a licence: raise the bound on runs, and look at the signals, which name the items.
//
//	runs   of the document that occur in a set ≤ 0
//	share  of the document's runs that occur in a set; no bound by default
//	items  in which they occur; no bound by default
//
// With signals, decontaminate.hit FILE:NUMBER is the number of runs that a document shares with an item. Items are
// numbered from 1 among those that have a text.
func Decontaminate(s *EvalSet) *Filter {
	find := finder{phrases: s.phrases}
	hits := map[int32]int{}
	var order []int32
	return &Filter{
		Name: "decontaminate", Bounds: []Bound{atMost("runs", 0), unbounded("share"), unbounded("items")},
		measure: func(d *Doc, values []float64) {
			clear(hits)
			order = order[:0]
			runs := 0
			all := find.find(d.Text, func(item int32) {
				if hits[item] == 0 {
					order = append(order, item)
				}
				hits[item]++
				runs++
			})
			values[0], values[1], values[2] = float64(runs), ratio(runs, max(all, runs)), float64(len(order))
			for _, item := range order {
				d.Add("decontaminate.hit "+s.items[item], float64(hits[item]))
			}
		},
	}
}

// EvalSet holds the text of evaluation sets. Any number of filters may use one at the same time.
type EvalSet struct {
	phrases *phrases
	items   []string // file and number of each
}

// EvalOptions configures how Decontaminate compares.
type EvalOptions struct {
	NGram     int    // words of a run; 13
	Shortest  int    // words of the shortest item that is looked for; 8
	TextField string // of a line of JSON; "text"
}

// ReadEvalSet reads the items of evaluation sets: a document of package corpus each, so a line of a .jsonl file or a
// whole text file.
func ReadEvalSet(paths []string, o EvalOptions) (*EvalSet, error) {
	s := &EvalSet{phrases: newPhrases()}
	r, err := corpus.Open(paths, corpus.Options{TextField: o.TextField})
	if err != nil {
		return nil, err
	}
	var words dedup.Words
	for d, err := range r.Documents() {
		unnamed := func(c corpus.RejectCount) bool { return c.Reason == corpus.NoText }
		if err != nil && slices.ContainsFunc(r.Report().Rejects, unnamed) {
			err = fmt.Errorf("%w\n  or name theirs, as in decontaminate: {against: [FILE], field: question}", err)
		}
		if err != nil {
			return nil, err
		}
		w := words.Hashes(d.Text)
		if len(w) < o.Shortest {
			continue
		}
		s.phrases.add(w, min(len(w), o.NGram), int32(len(s.items)))
		s.items = append(s.items, fmt.Sprintf("%s:%d", d.Source, d.Index+1))
	}
	for _, rej := range r.Report().Rejects {
		if rej.Reason != corpus.Empty {
			return nil, fmt.Errorf("not all of the evaluation sets can be read: %s\n  unread items would not be "+
				"found: repair or remove the files, or set field: to the name of their text field", r.Report())
		}
	}
	if len(s.items) == 0 {
		return nil, fmt.Errorf("the evaluation sets have no item of at least %d words\n"+
			"  try shortest: 4, or name other files", o.Shortest)
	}
	return s, nil
}

// decontaminate is the stage.
var decontaminate = kind{
	name: "decontaminate", bounds: Decontaminate(&EvalSet{phrases: newPhrases()}).Bounds,
	options: []option{
		{name: "against", value: []string{}, required: true, files: true}, {name: "field", value: "text"},
		{name: "ngram", value: 13.0}, {name: "shortest", value: 8.0},
	},
	load: func(o given) (func() Stage, error) {
		e := EvalOptions{TextField: o.text("field")}
		if err := o.whole(1000, []string{"ngram", "shortest"}, &e.NGram, &e.Shortest); err != nil {
			return nil, err
		}
		if e.Shortest > e.NGram {
			return nil, fmt.Errorf("ngram %d is below shortest %d\n  try ngram: 13 and shortest: 8",
				e.NGram, e.Shortest)
		}
		set, err := ReadEvalSet(o.texts("against"), e)
		if err != nil {
			return nil, err
		}
		return func() Stage { return Decontaminate(set) }, nil
	},
}
