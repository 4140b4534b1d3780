package prepare

import (
	"fmt"
	"math"
	"strings"

	"anneal/config"
	"anneal/dataset"
)

// manyEpochs is the number of epochs after which repeated tokens are worth clearly less than new ones (Muennighoff et
// al. 2023, arXiv 2305.16264).
const manyEpochs = 4

// SourcePlan describes what a run reads of one source of a mix.
type SourcePlan struct {
	Name   string  `json:"name"`
	Path   string  `json:"path"`
	Tokens uint64  `json:"tokens"`        // in its training split
	Weight float64 `json:"weight"`        // share of the rows of the whole run
	Drawn  int64   `json:"drawn_tokens"`  // tokens read from the source
	Epochs float64 `json:"epochs"`        // how often its rows are read
	Again  int64   `json:"repeat_tokens"` // tokens of Drawn that were read before

	// Not part of the report: how packing fills the rows.
	Use    dataset.Utilisation `json:"-"`
	hasVal bool
}

// WeightsChange holds the weights of the sources, in their order, from a token of the run on.
type WeightsChange struct {
	From    int64     `json:"from_tokens"`
	Weights []float64 `json:"weights"`
	To      []float64 `json:"to,omitempty"` // the weights change linearly to these until the next entry
}

// MixPlan describes what a run reads of the sources of its mix.
type MixPlan struct {
	Sources []SourcePlan    `json:"sources"`
	Weights []WeightsChange `json:"weights"` // one entry if the weights are constant
	Context int             `json:"context"`

	Limit float64 `json:"-"` // epochs that unimax permits; 0 means no limit; not part of the report
}

// MeasureSources measures the data sets of a list in rows of context tokens. If check is not nil, it is called for each
// data set.
func MeasureSources(list []config.Source, packing string, context int,
	check func(*dataset.Dataset) error) (plans []SourcePlan, vocab int, err error) {
	var sets []*dataset.Dataset
	defer func() {
		for _, d := range sets {
			d.Close()
		}
	}()
	for _, s := range list {
		d, err := openSource(s)
		if err != nil {
			return nil, 0, &dataset.Error{Err: err}
		}
		sets = append(sets, d)
		use, err := d.Utilisation(dataset.Packing(packing), context)
		if err != nil {
			return nil, 0, &dataset.Error{Err: err}
		}
		if check != nil {
			if err := check(d); err != nil {
				return nil, 0, err
			}
		}
		plans = append(plans, SourcePlan{
			Name: s.Name, Path: s.Path, Tokens: d.Manifest.Train.Tokens, Use: use, hasVal: d.Manifest.Val.Tokens > 1,
		})
	}
	if err := dataset.SameTokenizer(sets); err != nil {
		return nil, 0, &dataset.Error{Err: err}
	}
	return plans, sets[0].Manifest.Tokenizer.VocabSize, nil
}

// RowsOf returns how many rows the run reads of each source.
func RowsOf(sources []SourcePlan) []uint64 {
	rows := make([]uint64, len(sources))
	for i, s := range sources {
		rows[i] = s.Use.Rows
	}
	return rows
}

// NewMixPlan computes what the first samples of a mix read.
func NewMixPlan(sources []SourcePlan, m dataset.Mix, samples uint64, context int) *MixPlan {
	p := &MixPlan{Sources: sources, Context: context}
	for _, phase := range m {
		c := WeightsChange{From: int64(phase.From) * int64(context), Weights: dataset.Normalised(phase.Weights)}
		if phase.To != nil {
			c.To = dataset.Normalised(phase.To)
		}
		p.Weights = append(p.Weights, c)
	}
	for i, n := range m.Expected(samples) {
		s := &p.Sources[i]
		rows := math.Round(n)
		s.Weight = n / float64(max(samples, 1))
		s.Drawn, s.Epochs = int64(rows)*int64(context), rows/float64(s.Use.Rows)
		s.Again = int64(max(rows-float64(s.Use.Rows), 0)) * int64(context)
	}
	return p
}

// Utilisation returns the effect of the packing on all sources, weighted by how much the run reads of each.
func (p *MixPlan) Utilisation() dataset.Utilisation {
	u := dataset.Utilisation{Packing: p.Sources[0].Use.Packing}
	share := 0.0
	for _, s := range p.Sources {
		u.Rows, u.Positions, u.Cut, u.LeftOut = u.Rows+s.Use.Rows, u.Positions+s.Use.Positions, u.Cut+s.Use.Cut,
			u.LeftOut+s.Use.LeftOut
		share += s.Weight * s.Use.Share()
	}
	u.Trained = uint64(share * float64(u.Positions))
	return u
}

// Remarks returns notes about the mix for the user.
func (p *MixPlan) Remarks() (list []string) {
	for _, s := range p.Sources {
		if p.Limit > 0 && s.Epochs > 1.01*p.Limit {
			list = append(list, fmt.Sprintf("warning: unimax:%g is impossible: with that "+
				"many epochs all sources together are shorter than the run, and %s is read %.1f times; try fewer steps",
				p.Limit, s.Name, s.Epochs))
			break // the remaining sources exceed it too
		}
	}
	for _, s := range p.Sources {
		switch {
		case s.Epochs > manyEpochs:
			list = append(list, fmt.Sprintf("warning: %s is read %.1f times: beyond about %d repeats, more repeats "+
				"are worth clearly less than new text (arXiv 2305.16264); try a smaller weight, or unimax:%[3]d",
				s.Name, s.Epochs, manyEpochs))
		case s.Drawn == 0:
			list = append(list, fmt.Sprintf("warning: %s is never read", s.Name))
		}
		if !s.hasVal {
			list = append(list, fmt.Sprintf("%s has no validation split: its bits per byte are unknown", s.Name))
		}
	}
	return list
}

// MixConfig returns the lines of a training configuration for sources with constant weights.
func MixConfig(sources []config.Source, weights []float64, comment string) string {
	paths, words := make([]string, len(sources)), make([]string, len(sources))
	for i, s := range sources {
		paths[i], words[i] = s.Name+"="+s.Path, fmt.Sprintf("%s=%.4g", s.Name, weights[i])
	}
	return fmt.Sprintf("data:\n  mix: %q\n  weights: %q  # %s\n",
		strings.Join(paths, ", "), strings.Join(words, " "), comment)
}

// MixOptions are the options of PlanMix.
type MixOptions struct {
	Sources []config.Source
	Weights config.Weighting
	Method  string // the name of the Weights
	Tokens  int64  // of the run; 0 means one pass over all data
	Context int
	Packing string
}

// PlanMix computes the mix that a method gives for the sources, and returns the matching lines of a configuration. It
// trains nothing.
func PlanMix(o MixOptions) (*MixPlan, string, error) {
	sources, _, err := MeasureSources(o.Sources, o.Packing, o.Context, nil)
	if err != nil {
		return nil, "", err
	}
	samples, sizes := uint64(o.Tokens)/uint64(o.Context), make([]float64, len(sources))
	for i, n := range RowsOf(sources) {
		sizes[i] = float64(n)
		if o.Tokens == 0 {
			samples += n
		}
	}
	weights := o.Weights.Weights(sizes, float64(samples))
	p := NewMixPlan(sources, dataset.Mix{{Weights: weights}}, samples, o.Context)
	if o.Weights.Method == "unimax" {
		p.Limit = o.Weights.Number
	}
	return p, MixConfig(o.Sources, weights, fmt.Sprintf("%s for %d tokens", o.Method, int64(samples)*int64(o.Context))),
		nil
}
