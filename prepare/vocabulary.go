package prepare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"anneal/chart"
	"anneal/corpus"
	"anneal/internal/units"
	"anneal/tokenizer"
)

// VocabularySweep shows the effect of the vocabulary size on held-out text. Pretokens are counted once, and merges
// are learned once, for the largest size: the merges of a smaller vocabulary are the first of those of a larger one.
type VocabularySweep struct {
	Points  []VocabularyPoint     `json:"points"`
	Width   int                   `json:"width"`
	Learned tokenizer.TrainReport `json:"learned"`
	Text    corpus.Report         `json:"text"`
	HeldOut corpus.Report         `json:"held_out"`
	Seconds float64               `json:"train_seconds"`
}

// VocabularyPoint is a vocabulary of one size.
type VocabularyPoint struct {
	Vocab int `json:"vocab_size"`
	tokenizer.Stats
	EmbeddingParams   int64   `json:"embedding_params"` // vocabulary times width: one table
	EncodeMBPerSecond float64 `json:"encode_mb_per_second"`
}

// VocabularyOptions are the options of a sweep.
type VocabularyOptions struct {
	Sizes []int
	Width int  // width of the model, for the size of the embedding
	Val   Text // held-out text; without paths, every 20th document of the text is held out
	Train tokenizer.TrainOptions
}

// heldOut: one document in so many is held out.
const heldOut = 20

// SweepVocabulary learns from text and measures each size on held-out text.
func SweepVocabulary(ctx context.Context, text Text, o VocabularyOptions) (VocabularySweep, error) {
	sizes := slices.Compact(slices.Sorted(slices.Values(o.Sizes)))
	if len(sizes) == 0 {
		return VocabularySweep{}, errors.New("no vocabulary sizes to sweep")
	}
	if least := 256 + len(o.Train.Special); sizes[0] < least {
		return VocabularySweep{}, fmt.Errorf("a vocabulary of %d tokens is too small: it must hold 256 bytes and %s\n"+
			"  try 4096 or more", sizes[0], units.Count(len(o.Train.Special), "special token"))
	}
	s := VocabularySweep{Width: o.Width}
	o.Train.VocabSize = sizes[len(sizes)-1]
	all, err := s.learn(ctx, text, o)
	if err != nil {
		return s, err
	}
	var toks []*tokenizer.Tokenizer
	for _, size := range sizes {
		tok, err := all.Cut(size)
		if err != nil {
			return s, err
		}
		if toks = append(toks, tok); tok == all {
			break // the text has no more merges to learn
		}
	}
	return s, s.measure(ctx, text, o, toks)
}

// held reports whether document i of the text that a vocabulary is learned from is held out: none if the options name
// other text.
func (o *VocabularyOptions) held(i int) bool { return len(o.Val.Paths) == 0 && i%heldOut == heldOut-1 }

// learn returns the largest vocabulary, learned from what is not held out.
func (s *VocabularySweep) learn(ctx context.Context, text Text, o VocabularyOptions) (*tokenizer.Tokenizer, error) {
	r, docs, err := text.Open(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	o.Train.Report = &s.Learned
	all, err := tokenizer.Train(ctx, o.Train, func(yield func([]byte, error) bool) {
		i := -1
		for d, err := range docs {
			if i++; err == nil && o.held(i) {
				continue
			}
			if !yield(d, err) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	s.Text, s.Seconds = r.Report(), time.Since(start).Seconds()
	return all, nil
}

// measure adds a point for each vocabulary, from the held-out text.
func (s *VocabularySweep) measure(ctx context.Context, text Text, o VocabularyOptions,
	toks []*tokenizer.Tokenizer) error {
	val, own := o.Val, len(o.Val.Paths) > 0
	if !own {
		val.Paths, val.Options = text.Paths, text.Options
	}
	var evals []*tokenizer.Evaluator
	for _, tok := range toks {
		evals = append(evals, tok.NewEvaluator())
	}
	var sample [][]byte // for the speed
	read, sampled := 0, 0
	var err error
	s.HeldOut, err = val.each(ctx, func(d corpus.Document) {
		if read++; !own && !o.held(read-1) {
			return
		}
		for _, e := range evals {
			e.Add("", d.Text)
		}
		if sampled < speedBytes {
			sample, sampled = append(sample, d.Text), sampled+len(d.Text)
		}
	})
	if err != nil {
		return err
	}
	if sampled == 0 {
		return fmt.Errorf("no held-out text: %d documents were read\n  try --val with other text", read)
	}
	for i, tok := range toks {
		s.Points = append(s.Points, VocabularyPoint{
			Vocab: tok.VocabSize(), Stats: evals[i].Total(), EmbeddingParams: int64(tok.VocabSize()) * int64(o.Width),
			EncodeMBPerSecond: warmSpeed(tok, sample),
		})
	}
	return nil
}

// speedBytes is the size of the text for measuring the speed of a vocabulary.
const speedBytes = 8 << 20

// warmSpeed returns the MB/s of encoding docs a second time.
func warmSpeed(tok *tokenizer.Tokenizer, docs [][]byte) float64 {
	e := tok.NewEncoder()
	var ids []uint32
	var start time.Time
	bytes := 0
	for range 2 {
		start, bytes = time.Now(), 0
		for _, d := range docs {
			ids = e.Encode(ids[:0], d)
			bytes += len(d)
		}
	}
	return float64(bytes) / 1e6 / time.Since(start).Seconds()
}

// Chart shows the effect of a larger vocabulary.
func (s *VocabularySweep) Chart() *chart.Chart {
	bytes := chart.Series{Name: "bytes per token", Style: chart.Both}
	words := chart.Series{Name: "tokens per word", Style: chart.Both}
	c := &chart.Chart{
		Title: "held-out text by vocabulary size",
		X:     chart.Axis{Label: "vocabulary (1,024 tokens)", Log: true},
		Y:     chart.Axis{Label: "bytes per token; tokens per word"},
	}
	for _, p := range s.Points {
		x := float64(p.Vocab) / 1024
		bytes.X, bytes.Y = append(bytes.X, x), append(bytes.Y, p.BytesPerToken)
		words.X, words.Y = append(words.X, x), append(words.Y, p.Fertility)
		c.X.Ticks = append(c.X.Ticks, x)
	}
	c.Series = []chart.Series{bytes, words}
	return c
}
