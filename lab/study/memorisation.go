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
	Documents int `json:"documents"` // documents of random words, besides the secrets
}

// canaries holds the secrets of the study.
func (o MemorisationOptions) canaries() synth.Canaries {
	return synth.Canaries{
		Background: o.Documents, Each: 20, Copies: []int{1, 2, 4, 8, 16, 32, 64}, References: 1000,
		Seed: uint64(o.Seed),
	}
}

// A Memorised says what a model knows of the secrets that occur a given number of times in its text.
type Memorised struct {
	Copies    int     `json:"copies"`
	Extracted float64 `json:"extracted"` // share that the model writes after the key
	// mean of log₂(number of references) − log₂(rank among them)
	Exposure float64 `json:"exposure_bits"`
}

// A Memory says what a model knows of its text.
type Memory struct {
	Secrets []Memorised `json:"secrets"`
	HeldOut float64     `json:"held_out_bits_per_byte"` // loss on random words that it has not seen
}

// Extracted returns the share of all secrets that the model writes after the key.
func (m Memory) Extracted() (share float64) {
	for _, s := range m.Secrets {
		share += s.Extracted / float64(len(m.Secrets))
	}
	return share
}

// Memories says what two models know: one of a text with secrets, and one of the same text without repeated documents.
type Memories struct {
	Repeated     Memory `json:"with_copies"`
	Deduplicated Memory `json:"deduplicated"`
}

// heldOut is the number of held-out documents of random words that both models are measured on.
const heldOut = 1000

// Memorise trains a model on a text with secrets in it, and another on the same text without repeated documents
// (Carlini et al. 2019, arXiv 1802.08232; Lee et al. 2021, arXiv 2107.06499).
func Memorise(ctx context.Context, d *Dir, o MemorisationOptions) (*Report, *Memories, error) {
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
		"held-out": {Train: synth.RandomWords(heldOut, c.Seed+1)},
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
	m := &Memories{}
	memories := []*Memory{&m.Repeated, &m.Deduplicated}
	err = lab.Together(ctx, len(memories), 0, func(ctx context.Context, i int) error {
		name := []string{"text", "deduplicated"}[i]
		cfg, err := memorisationConfig(d.File("data-"+name), o)
		if err != nil {
			return err
		}
		if _, err := d.Train(ctx, name, cfg); err != nil {
			return err
		}
		*memories[i], err = remembered(ctx, d, name, c.Copies)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	r := &Report{
		Study: "memorisation", Seen: m.seen(len(text.Train) - len(once.Train)),
		Figures: map[string]any{"models": m}, Charts: []*chart.Chart{m.chart()}, Headlines: m.headlines(),
	}
	return r, m, d.Write(r)
}

// headlines returns the exposure of secrets, and the share written of those with the most copies.
func (m *Memories) headlines() (list []Headline) {
	for _, s := range m.Repeated.Secrets {
		list = append(list, Headline{fmt.Sprintf("exposure, copies: %d", s.Copies), s.Exposure, "bits"})
	}
	most := len(m.Repeated.Secrets) - 1
	return append(list,
		share(fmt.Sprintf("written, copies: %d", m.Repeated.Secrets[most].Copies), m.Repeated.Secrets[most].Extracted),
		share("written of the same, deduplicated", m.Deduplicated.Secrets[most].Extracted),
		Headline{"new documents, per byte", m.Repeated.HeldOut, "bits"},
		Headline{"new documents, per byte, deduplicated", m.Deduplicated.HeldOut, "bits"})
}

// copiesName returns the name of the data set of secrets with a number of copies.
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

// memorisationConfig returns the configuration of a model of two layers. Training on both texts has the same number of
// steps.
func memorisationConfig(data string, o MemorisationOptions) (*config.Config, error) {
	return run.LoadConfig(config.Sources{Overrides: []string{
		"data.path=" + data, fmt.Sprintf("seed=%d", o.Seed), "precision=fp32", "model.layers=2", "model.dim=96",
		"model.heads=4", "model.context=112", "optimizer.lr=3e-3", fmt.Sprintf("train.steps=%d", o.Steps),
		fmt.Sprintf("schedule.warmup=%d", max(o.Steps/50, 1)), "train.batch_tokens=3584", "train.micro_batch=32",
		"train.eval_every=0", "optimizer.weight_decay=0",
	}})
}

// remembered asks the model of a run for the secrets of each number of copies, and for new documents.
func remembered(ctx context.Context, d *Dir, name string, copies []int) (m Memory, err error) {
	r, err := use.Open(d.File(name), 1)
	if err != nil {
		return m, err
	}
	defer r.Close()
	references, err := r.DocumentLosses(ctx, d.File("data-references"), nil)
	if err != nil {
		return m, err
	}
	slices.Sort(references)
	for _, n := range copies {
		data := d.File("data-" + copiesName(n))
		losses, err := r.DocumentLosses(ctx, data, nil)
		if err != nil {
			return m, err
		}
		secrets := Memorised{Copies: n}
		for _, x := range losses {
			rank, _ := slices.BinarySearch(references, x) // how many references the model finds more likely
			bits := math.Log2(float64(len(references)+1)) - math.Log2(float64(rank+1))
			secrets.Exposure += bits / float64(len(losses))
		}
		e, err := r.EvaluateSplit(ctx, []config.Source{{Path: data}}, true, 0, nil)
		if err != nil {
			return m, err
		}
		secrets.Extracted = e.Answers.ExactMatch()
		m.Secrets = append(m.Secrets, secrets)
	}
	e, err := r.EvaluateSplit(ctx, []config.Source{{Path: d.File("data-held-out")}}, true, 0, nil)
	m.HeldOut = e.BitsPerByte
	return m, err
}

// seen describes what both models know.
func (m *Memories) seen(repeated int) string {
	var s strings.Builder
	first, last := m.Repeated.Secrets[0], m.Repeated.Secrets[len(m.Repeated.Secrets)-1]
	fmt.Fprintf(&s,
		"Of secrets that are in the text once the model writes %.0f %%, of those that are there %d times %.0f %%; "+
			"their exposure goes from %.1f to %.1f bits (%.1f is the most that 1,000 references can show).",
		100*first.Extracted, last.Copies, 100*last.Extracted, first.Exposure, last.Exposure, math.Log2(1001))
	half := slices.IndexFunc(m.Repeated.Secrets, func(m Memorised) bool { return m.Extracted >= 0.5 })
	if half >= 0 {
		fmt.Fprintf(&s, " From %d copies on half of them or more can be had.", m.Repeated.Secrets[half].Copies)
	}
	fmt.Fprintf(&s, " Without the %d repeated documents the model writes %.0f %% of all secrets, instead of %.0f %%. "+
		"New documents cost it %.3f bits per byte, instead of %.3f.", repeated, 100*m.Deduplicated.Extracted(),
		100*m.Repeated.Extracted(), m.Deduplicated.HeldOut, m.Repeated.HeldOut)
	return s.String()
}

// chart draws exposure over the number of copies.
func (m *Memories) chart() *chart.Chart {
	c := &chart.Chart{
		Title: "What a model remembers",
		X:     chart.Axis{Label: "copies in the text", Log: true},
		Y:     chart.Axis{Label: "exposure (bits)"},
	}
	for _, x := range []struct {
		name   string
		memory Memory
	}{{"as it is", m.Repeated}, {"deduplicated", m.Deduplicated}} {
		var copies, bits []float64
		for _, s := range x.memory.Secrets {
			copies, bits = append(copies, float64(s.Copies)), append(bits, s.Exposure)
		}
		c.Series = append(c.Series, chart.Series{Name: x.name, X: copies, Y: bits, Style: chart.Both})
	}
	return c
}
