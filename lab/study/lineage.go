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
	"anneal/lab"
	"anneal/model"
	"anneal/prepare/synth"
	"anneal/run"
	"anneal/use"
)

// Language models that learn from each other's texts. The real text consists of random words, so its words and their
// frequencies are known; a tail word is one of the rarer half.

// The sizes of the lineages: documents of twelve words that a generation writes, and generations after the first.
const (
	lineageDocuments   = 300
	lineageGenerations = 6
	lineageHeldOut     = 1000
	lineageContext     = 36 // tokens of a document: words, spaces and the end
)

// A Lineage is a model that learnt from the real text, followed by models that each learnt from the one before.
type Lineage struct {
	Mode   Mode      `json:"mode"`
	Models []Written `json:"models"` // the first is that of the real text
}

// Written is a generation of language models, with the text that it writes.
type Written struct {
	HeldOut float64 `json:"held_out_bits_per_byte"` // loss on real text that no model has seen
	Words   int     `json:"words"`                  // number of different real words in the model's text
	Tail    float64 `json:"tail_recall"`            // share of the rarer half of the real words that still occurs
	Entropy float64 `json:"entropy_nats"`           // entropy of the words that the model writes
}

// last returns the last generation.
func (l Lineage) last() Written { return l.Models[len(l.Models)-1] }

// loss returns the increase of the held-out loss in bits per byte.
func (l Lineage) loss() float64 { return l.last().HeldOut - l.Models[0].HeldOut }

// A breeding trains lineages in a directory.
type breeding struct {
	d     *Dir
	seed  uint64
	steps int
	real  []string
}

// breed trains a lineage for each mode. All begin with the same model.
func breed(ctx context.Context, d *Dir, seed uint64, steps int) ([]Lineage, error) {
	b := breeding{d: d, seed: seed, steps: steps, real: synth.RandomWords(lineageDocuments, seed)}
	held := synth.Text{Train: synth.RandomWords(lineageHeldOut, seed+1<<32)}
	if err := b.build(ctx, "held-out", held.Train); err != nil {
		return nil, err
	}
	list := []Lineage{{Mode: Replace}, {Mode: Mix}, {Mode: Accumulate}}
	first, texts, err := b.generation(ctx, "first", 0, b.real)
	if err != nil {
		return nil, err
	}
	err = lab.Together(ctx, len(list), 0, func(ctx context.Context, i int) error {
		l := &list[i]
		l.Models = []Written{first}
		text, written := slices.Clone(b.real), texts
		for n := 1; n <= lineageGenerations; n++ {
			text = b.next(l.Mode, n, text, written)
			var w Written
			var err error
			if w, written, err = b.generation(ctx, fmt.Sprintf("%s-%d", l.Mode, n), n, text); err != nil {
				return err
			}
			l.Models = append(l.Models, w)
		}
		return nil
	})
	return list, err
}

// next returns the text that generation n learns from: the text of the previous generation and, depending on the mode,
// the text that this one learnt from, or some new real text.
func (b *breeding) next(mode Mode, n int, before, written []string) []string {
	switch mode {
	case Accumulate:
		return append(before, written...)
	case Mix:
		fresh := int(mixedIn * lineageDocuments)
		return append(synth.RandomWords(fresh, b.seed+uint64(n)<<40), written[fresh:]...)
	}
	return written
}

// generation trains a model on documents, and returns its measurements and as many documents as there are real ones.
func (b *breeding) generation(ctx context.Context, name string, n int, documents []string) (w Written,
	texts []string, err error) {
	if err := b.build(ctx, name, documents); err != nil {
		return w, nil, err
	}
	cfg, err := b.config(name)
	if err != nil {
		return w, nil, err
	}
	if _, err := b.d.Train(ctx, "model-"+name, cfg); err != nil {
		return w, nil, err
	}
	r, err := use.Open(b.d.File("model-"+name), 1)
	if err != nil {
		return w, nil, err
	}
	defer r.Close()
	e, err := r.EvaluateSplit(ctx, []config.Source{{Path: b.d.File("text-held-out")}}, true, 0, nil)
	if err != nil {
		return w, nil, err
	}
	list, err := r.GenerateMany(ctx, make([]string, lineageDocuments), use.GenerateOptions{
		MaxTokens: lineageContext, Sampling: model.Sampling{Temperature: 1, Seed: (b.seed<<8 + uint64(n)) << 24},
	}, nil)
	if err != nil {
		return w, nil, err
	}
	for _, x := range list {
		texts = append(texts, x.Text)
	}
	w = wordsOf(texts)
	w.HeldOut = e.BitsPerByte
	return w, texts, nil
}

// build makes the data set of a text, unless it exists.
func (b *breeding) build(ctx context.Context, name string, documents []string) error {
	dir := b.d.File("text-" + name)
	if dataset.Exists(dir) {
		return nil
	}
	_, err := synth.Text{Train: documents}.Build(ctx, dir, false)
	return err
}

// config returns the configuration of a model of two layers. All generations have the same steps and initial weights.
func (b *breeding) config(name string) (*config.Config, error) {
	return run.LoadConfig(config.Sources{Overrides: []string{
		"data.path=" + b.d.File("text-"+name), "data.packing=pad", fmt.Sprintf("seed=%d", b.seed), "precision=fp32",
		"threads=1", "model.layers=2", "model.dim=32", "model.heads=2", fmt.Sprintf("model.context=%d", lineageContext),
		"optimizer.lr=3e-3", "optimizer.weight_decay=0.1", fmt.Sprintf("train.steps=%d", b.steps),
		fmt.Sprintf("schedule.warmup=%d", max(b.steps/20, 1)), "schedule.final_ratio=0.1",
		fmt.Sprintf("train.batch_tokens=%d", 32*lineageContext), "train.micro_batch=32", "train.eval_every=0",
	}})
}

// wordsOf measures the words of documents against those of the real text.
func wordsOf(documents []string) (w Written) {
	rank := map[string]int{}
	for i := range synth.WordCount {
		rank[synth.Word(i)] = i
	}
	counts, all, tail := map[string]int{}, 0, 0
	for _, doc := range documents {
		for word := range strings.FieldsSeq(doc) {
			counts[word]++
			all++
		}
	}
	for word, n := range counts {
		p := float64(n) / float64(all)
		w.Entropy -= p * math.Log(p)
		if i, real := rank[word]; real {
			w.Words++
			if i >= synth.WordCount/2 {
				tail++
			}
		}
	}
	w.Tail = float64(tail) / float64(synth.WordCount-synth.WordCount/2)
	return w
}

// lineageHeadlines returns the losses and rare words of the first model and of the last ones.
func lineageHeadlines(list []Lineage) []Headline {
	first := list[0].Models[0]
	all := []Headline{
		{"real text, per byte, first model", first.HeldOut, "bits"}, share("rare words, first model", first.Tail),
	}
	for _, l := range list {
		all = append(all, Headline{"real text, per byte, " + string(l.Mode), l.last().HeldOut, "bits"},
			share("rare words, "+string(l.Mode), l.last().Tail))
	}
	return all
}

// lineagesSeen describes the results of the language models.
func lineagesSeen(list []Lineage) string {
	var s strings.Builder
	first := list[0].Models[0]
	fmt.Fprintf(&s, "A language model of %d real documents costs %.3f bits per byte of others, and writes %.0f %% of "+
		"the rarer half of the words.", lineageDocuments, first.HeldOut, 100*first.Tail)
	replaced, mixed, kept := list[0], list[1], list[2]
	fmt.Fprintf(&s, " After %d generations it is %.3f bits and %.0f %% where each learns from the one before, %.3f "+
		"bits and %.0f %% with a tenth of real text, and %.3f bits and %.0f %% from all texts so far.",
		len(replaced.Models)-1, replaced.last().HeldOut, 100*replaced.last().Tail, mixed.last().HeldOut,
		100*mixed.last().Tail, kept.last().HeldOut, 100*kept.last().Tail)
	if replaced.loss() > 0 && kept.loss() <= replaced.loss()/4 {
		s.WriteString(" So they collapse where texts are thrown away, and hardly where they are kept.")
	}
	return s.String()
}

// lineageChart draws the held-out loss over generations.
func lineageChart(list []Lineage) *chart.Chart {
	c := &chart.Chart{
		Title: "Language models that learn from each other's texts", X: chart.Axis{Label: "generation"},
		Y: chart.Axis{Label: "bits per byte of real text"},
	}
	for _, l := range list {
		var x, y []float64
		for i, w := range l.Models {
			x, y = append(x, float64(i)), append(y, w.HeldOut)
		}
		c.Series = append(c.Series, chart.Series{Name: string(l.Mode), X: x, Y: y, Style: chart.Both})
	}
	return c
}
