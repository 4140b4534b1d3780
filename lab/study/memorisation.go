package study

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"anneal/chart"
	"anneal/config"
	"anneal/dataset"
	"anneal/dedup"
	"anneal/lab"
	"anneal/prepare/synth"
	"anneal/run"
	"anneal/use"
)

// MemorisationOptions are the options of Memorise.
type MemorisationOptions struct {
	Seed      int `json:"seed"`
	Steps     int `json:"steps"`
	Documents int `json:"documents"` // of random words, among which the secrets are
}

// canaries are the secrets of the study.
func (o MemorisationOptions) canaries() synth.Canaries {
	return synth.Canaries{
		Background: o.Documents, Each: 20, Copies: []int{1, 2, 4, 8, 16, 32, 64}, References: 1000,
		Seed: uint64(o.Seed),
	}
}

// A Memorised is what a model knows of the secrets that were in its text so many times.
type Memorised struct {
	Copies    int     `json:"copies"`
	Extracted float64 `json:"extracted"` // share that the model writes after the key
	// mean of log₂ of the number of references less log₂ of the rank among them
	Exposure float64 `json:"exposure_bits"`
}

// Memorise trains a model on a text with secrets in it, and another on the same text without repeated documents
// (Carlini et al. 2019, arXiv 1802.08232; Lee et al. 2021, arXiv 2107.06499).
func Memorise(ctx context.Context, d *Dir, o MemorisationOptions) (*Report, map[string][]Memorised, error) {
	c := o.canaries()
	text, err := c.Text()
	if err != nil {
		return nil, nil, err
	}
	secrets, references := c.Secrets()
	once := text
	if once.Train, err = distinct(text.Train, d.Path); err != nil {
		return nil, nil, err
	}
	texts := map[string]synth.Text{
		"text": text, "deduplicated": once, "references": {Train: references, PromptEnd: "="},
	}
	for i, n := range c.Copies {
		texts[copiesName(n)] = synth.Text{Train: secrets[i], PromptEnd: "="}
	}
	for name, t := range texts {
		if dir := d.File("data-" + name); !dataset.Exists(dir) {
			if _, err := t.Build(ctx, dir, false); err != nil {
				return nil, nil, err
			}
		}
	}
	names := []string{"text", "deduplicated"}
	results := make([][]Memorised, len(names))
	err = lab.Together(ctx, len(names), 0, func(ctx context.Context, i int) error {
		cfg, err := memorisationConfig(d.File("data-"+names[i]), o)
		if err != nil {
			return err
		}
		if _, err := d.Train(ctx, names[i], cfg); err != nil {
			return err
		}
		results[i], err = remembered(ctx, d, names[i], c.Copies)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	found := map[string][]Memorised{names[0]: results[0], names[1]: results[1]}
	r := &Report{
		Study: "memorisation", Seen: memorisationSeen(found, len(text.Train)-len(once.Train)),
		Figures: map[string]any{"with_copies": results[0], "deduplicated": results[1]},
		Charts:  []*chart.Chart{memorisationChart(found)},
	}
	return r, found, d.Write(r)
}

// copiesName is the data set of the secrets of a number of copies.
func copiesName(n int) string { return fmt.Sprintf("copies-%d", n) }

// distinct removes documents that occurred before. dir is for temporary files.
func distinct(documents []string, dir string) ([]string, error) {
	exact := dedup.NewExact(dedup.Document, 1, 64<<20, dir)
	defer exact.Close()
	hasher := exact.NewHasher()
	for i, doc := range documents {
		if err := hasher.Add(uint64(i), []byte(doc)); err != nil {
			return nil, err
		}
	}
	repeats, err := exact.Repeats()
	if err != nil {
		return nil, err
	}
	again := map[uint64]bool{}
	for r, err := range repeats {
		if err != nil {
			return nil, err
		}
		again[r.Document] = true
	}
	var kept []string
	for i, doc := range documents {
		if !again[uint64(i)] {
			kept = append(kept, doc)
		}
	}
	return kept, nil
}

// memorisationConfig is a model of two layers. Both texts are trained on for as many steps.
func memorisationConfig(data string, o MemorisationOptions) (*config.Config, error) {
	return run.LoadConfig(config.Sources{Overrides: []string{
		"data.path=" + data, fmt.Sprintf("seed=%d", o.Seed), "precision=fp32", "model.layers=2", "model.dim=96",
		"model.heads=4", "model.context=112", "optimizer.lr=3e-3", fmt.Sprintf("train.steps=%d", o.Steps),
		fmt.Sprintf("schedule.warmup=%d", max(o.Steps/50, 1)), "train.batch_tokens=3584", "train.micro_batch=32",
		"train.eval_every=0", "optimizer.weight_decay=0",
	}})
}

// remembered asks the model of a run for the secrets of each number of copies.
func remembered(ctx context.Context, d *Dir, name string, copies []int) ([]Memorised, error) {
	r, err := use.Open(d.File(name), 1)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	references, err := r.DocumentLosses(ctx, d.File("data-references"), nil)
	if err != nil {
		return nil, err
	}
	slices.Sort(references)
	var list []Memorised
	for _, n := range copies {
		data := d.File("data-" + copiesName(n))
		losses, err := r.DocumentLosses(ctx, data, nil)
		if err != nil {
			return nil, err
		}
		m := Memorised{Copies: n}
		for _, x := range losses {
			rank, _ := slices.BinarySearch(references, x) // of how many the model finds more likely
			m.Exposure += (math.Log2(float64(len(references)+1)) - math.Log2(float64(rank+1))) / float64(len(losses))
		}
		e, err := r.EvaluateSplit(ctx, []config.Source{{Path: data}}, true, 0, nil)
		if err != nil {
			return nil, err
		}
		m.Extracted = e.Answers.ExactMatch()
		list = append(list, m)
	}
	return list, nil
}

// memorisationSeen says what both models know.
func memorisationSeen(found map[string][]Memorised, repeated int) string {
	var s strings.Builder
	with, once := found["text"], found["deduplicated"]
	last := len(with) - 1
	fmt.Fprintf(&s,
		"Of secrets that are in the text once the model writes %.0f %%, of those that are there %d times %.0f %%; "+
			"their exposure goes from %.1f to %.1f bits (%.1f is the most that 1,000 references can show).",
		100*with[0].Extracted, with[last].Copies, 100*with[last].Extracted, with[0].Exposure, with[last].Exposure,
		math.Log2(1001))
	first := slices.IndexFunc(with, func(m Memorised) bool { return m.Extracted >= 0.5 })
	if first >= 0 {
		fmt.Fprintf(&s, " From %d copies on half of them or more can be had.", with[first].Copies)
	}
	all := 0.0
	for _, m := range once {
		all += m.Extracted / float64(len(once))
	}
	fmt.Fprintf(&s,
		" Without the %d repeated documents the model writes %.0f %% of all secrets: what is left is what one "+
			"copy leaves.", repeated, 100*all)
	return s.String()
}

// memorisationChart shows exposure by copies.
func memorisationChart(found map[string][]Memorised) *chart.Chart {
	c := &chart.Chart{
		Title: "What a model remembers",
		X:     chart.Axis{Label: "copies in the text", Log: true},
		Y:     chart.Axis{Label: "exposure (bits)"},
	}
	for _, x := range []struct{ key, name string }{{"text", "as it is"}, {"deduplicated", "deduplicated"}} {
		var copies, bits []float64
		for _, m := range found[x.key] {
			copies, bits = append(copies, float64(m.Copies)), append(bits, m.Exposure)
		}
		c.Series = append(c.Series, chart.Series{Name: x.name, X: copies, Y: bits, Style: chart.Both})
	}
	return c
}
