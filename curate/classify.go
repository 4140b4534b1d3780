package curate

import (
	"fmt"
	"slices"
	"strings"

	"anneal/fasttext"
)

// A model of fastText judges a document by the words of its whole text (Joulin et al. 2016, arXiv 1607.01759). As in
// other tools, the text counts as one line, with blanks in place of line ends; its case does not change. No model
// comes with this package: bring one, such as lid.176 for languages, or train one (TrainClassifier).
//
// A score is the probability of a label plus 1e-5, as fastText gives it, so that published thresholds hold: 0.65 for
// the language of FineWeb and DCLM, 0.018112 for DCLM's quality model. It is 0 for a text that the model knows nothing
// about, and for a label that it does not know (an error in a pipeline).
//
// Memory: the model, and up to 5 MiB a goroutine. Not for kinds of text that the model has not learnt from: it answers
// anyway.

var (
	languageBounds = []Bound{atLeast("score", 0.65)}
	qualityBounds  = []Bound{atLeast("score", 0.5)}
)

// Language drops documents for which no kept language is likely.
//
//	score  of the best of the languages to keep ≥ 0.65
//
// The signal language.best NAME is the score of the best of all languages.
func Language(m *fasttext.Model, keep []string) *Filter {
	var columns []int
	for _, name := range keep {
		if i := slices.Index(m.Labels(), name); i >= 0 {
			columns = append(columns, i)
		}
	}
	names := make([]string, len(m.Labels()))
	p := m.NewPredictor()
	f := &Filter{Name: "language", Bounds: languageBounds}
	f.measure = func(d *Doc, values []float64) {
		scores := p.Scores(d.Text)
		if scores == nil {
			return
		}
		for _, i := range columns {
			values[0] = max(values[0], float64(scores[i]))
		}
		best := 0
		for i, s := range scores {
			if s > scores[best] {
				best = i
			}
		}
		if names[best] == "" {
			names[best] = f.Name + ".best " + m.Labels()[best]
		}
		d.Add(names[best], float64(scores[best]))
	}
	return f
}

// Quality drops documents that are unlikely to have a label.
//
//	score  of the label ≥ 0.5
func Quality(m *fasttext.Model, label string) *Filter {
	column := slices.Index(m.Labels(), label)
	p := m.NewPredictor()
	return &Filter{Name: "quality", Bounds: qualityBounds, measure: func(d *Doc, values []float64) {
		if scores := p.Scores(d.Text); scores != nil && column >= 0 {
			values[0] = float64(scores[column])
		}
	}}
}

var language = kind{
	name: "language", bounds: languageBounds, many: true,
	options: []option{{name: "model", value: "", required: true, files: true},
		{name: "keep", value: []string(nil), required: true}},
	load: func(o given) (func() Stage, error) {
		keep := o.texts("keep")
		m, err := loadClassifier(o.text("model"), keep...)
		return func() Stage { return Language(m, keep) }, err
	},
}

var quality = kind{
	name: "quality", bounds: qualityBounds, many: true,
	options: []option{{name: "model", value: "", required: true, files: true},
		{name: "label", value: "", required: true}},
	load: func(o given) (func() Stage, error) {
		m, err := loadClassifier(o.text("model"), o.text("label"))
		return func() Stage { return Quality(m, o.text("label")) }, err
	},
}

// loadClassifier reads a model that knows some labels.
func loadClassifier(path string, labels ...string) (*fasttext.Model, error) {
	m, err := fasttext.Load(path)
	if err != nil {
		return nil, err
	}
	for _, l := range labels {
		if known := m.Labels(); !slices.Contains(known, l) {
			more := ""
			if len(known) > 20 {
				known, more = known[:20], fmt.Sprintf(" and %d others", len(known)-20)
			}
			return nil, fmt.Errorf("%s has no label %q\n  try one of %s%s", path, l, strings.Join(known, ", "), more)
		}
	}
	return m, nil
}
