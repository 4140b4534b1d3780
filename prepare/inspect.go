package prepare

import (
	"fmt"

	"anneal/chart"
	"anneal/dataset"
)

// DataReport describes a data set and the effect of each packing on its training split.
type DataReport struct {
	Train         dataset.Counts `json:"train"`
	Val           dataset.Counts `json:"val"`
	BytesPerToken float64        `json:"bytes_per_token"`
	VocabSize     int            `json:"vocab_size"`
	Fingerprint   string         `json:"fingerprint"`
	Context       int            `json:"context"`
	// of the training split, or of the validation split if there is no other
	Lengths   dataset.Lengths       `json:"lengths"`
	LengthsOf string                `json:"lengths_of"` // "train" or "val"
	Packings  []dataset.Utilisation `json:"packings"`
	Shares    map[string]float64    `json:"utilisation"` // for each packing: the share of positions that are trained on
}

// InspectData reads the document index of the data set in dir. Rows have context tokens. Packings that need more data
// are left out.
func InspectData(dir string, context int) (*DataReport, error) {
	d, err := dataset.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	m := d.Manifest
	r := &DataReport{
		Train: m.Train.Counts, Val: m.Val.Counts, VocabSize: m.Tokenizer.VocabSize, Fingerprint: d.Fingerprint(),
		Context: context, LengthsOf: "train", Packings: []dataset.Utilisation{}, Shares: map[string]float64{},
	}
	if m.Train.Documents == 0 {
		r.LengthsOf = "val"
	}
	if r.Lengths, err = d.Lengths(r.LengthsOf == "val"); err != nil {
		return nil, err
	}
	counts := r.Measured()
	r.BytesPerToken = float64(counts.TextBytes) / float64(max(counts.Tokens, 1))
	if r.LengthsOf == "val" {
		return r, nil // nothing to pack
	}
	for _, kind := range []dataset.Packing{dataset.Concat, dataset.BestFit, dataset.Pad} {
		if kind == dataset.Concat && m.Train.Tokens <= uint64(context) {
			continue
		}
		u, err := d.Utilisation(kind, context)
		if err != nil {
			return nil, err
		}
		r.Packings = append(r.Packings, u)
		r.Shares[string(kind)] = u.Share()
	}
	return r, nil
}

// Measured returns the counts of the split that Lengths describes.
func (r *DataReport) Measured() dataset.Counts {
	if r.LengthsOf == "val" {
		return r.Val
	}
	return r.Train
}

// Chart draws the cumulative share of documents, and of their tokens, over the length of the documents.
func (r *DataReport) Chart() *chart.Chart {
	docs, tokens := chart.Series{Name: "documents", Style: chart.Both}, chart.Series{Name: "tokens", Style: chart.Both}
	var n, t uint64
	all := r.Measured()
	for _, b := range r.Lengths.Bins {
		n, t = n+b.Documents, t+b.Tokens
		docs.X, docs.Y = append(docs.X, float64(b.To-1)), append(docs.Y, 100*float64(n)/float64(all.Documents))
		tokens.X, tokens.Y = append(tokens.X, float64(b.To-1)), append(tokens.Y, 100*float64(t)/float64(all.Tokens))
	}
	return &chart.Chart{
		Title: fmt.Sprintf("%d documents by length", all.Documents),
		X:     chart.Axis{Label: "document length (tokens), at most", Log: true}, Y: chart.Axis{Label: "% of all"},
		Series: []chart.Series{docs, tokens},
		Bands:  []chart.Band{{Name: fmt.Sprintf("fits a row of %d", r.Context), From: 1, To: float64(r.Context)}},
	}
}
