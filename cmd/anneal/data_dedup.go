package main

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"anneal/corpus"
	"anneal/dedup"
)

type dataDedupCmd struct {
	textArgs
	Out      string   `required:"" placeholder:"DIR" help:"Directory for what is kept (DIR/docs) and the reports; it must not exist or be empty."`
	Exact    []string `default:"document" enum:"document,paragraph,line,none" help:"What goes if it came before, compared exactly: document, paragraph, line, several of them, or none."`
	MinWords int      `default:"3" placeholder:"N" help:"Shorter paragraphs and lines always stay."`
	Near     bool     `default:"true" negatable:"" help:"Also drop documents that are nearly the same as an earlier one (MinHash)."`
	Words    int      `default:"5" placeholder:"N" help:"Words in the n-grams that MinHash compares."`
	Bands    int      `default:"14" placeholder:"N" help:"Bands of MinHash: more find less similar documents."`
	Rows     int      `default:"8" placeholder:"N" help:"Rows of a band: more ask for greater similarity."`
	Verify   float64  `placeholder:"S" help:"Read again, and drop near-duplicates only if their similarity is at least S, such as 0.7."`
	NGrams   bool     `name:"ngrams" help:"Also drop documents of n-grams of words that came before (Bloom filter)."`
	NGramLen int      `name:"ngram-words" default:"13" placeholder:"N" help:"Words in these n-grams."`
	NGramMin float64  `name:"ngram-share" default:"0.8" placeholder:"S" help:"Share of a document's n-grams from which it goes."`
	Bloom    byteSize `default:"256MiB" placeholder:"SIZE" help:"Memory of the Bloom filter; 4 bytes an n-gram are plenty. It changes the result a little."`
	Memory   byteSize `default:"1GiB" placeholder:"SIZE" help:"Memory for sorting; the rest goes to disk. The result is the same."`
	threadsFlag
}

func (dataDedupCmd) Help() string {
	return example("anneal data dedup --out clean pages.jsonl.zst",
		"anneal data dedup --out clean --exact document,paragraph --memory 4GiB crawl/",
		"anneal data dedup --out clean --no-near --exact line --min-words 5 crawl/") + `

Near-duplicates with similarity s of their sets of n-grams are found with probability
1 − (1 − s^rows)^bands: by default 0.56 at s = 0.7, 0.92 at 0.8, 0.9996 at 0.9.
Of documents that are alike the first stays; n-grams, paragraphs and lines are compared in what stays. The result does not depend on --threads or --memory.`
}

// check refuses what cannot be, and what would have no effect.
func (c dataDedupCmd) check() error {
	none := slices.Contains(c.Exact, "none")
	for _, n := range []struct {
		flag  string
		value int
	}{{"min-words", c.MinWords}, {"words", c.Words}, {"bands", c.Bands}, {"rows", c.Rows}, {"ngram-words", c.NGramLen}} {
		if n.value < 1 {
			return &usageError{fmt.Sprintf("--%s is %d", n.flag, n.value), "try a whole number from 1"}
		}
	}
	switch {
	case !(c.Verify >= 0 && c.Verify <= 1):
		return &usageError{fmt.Sprintf("--verify %v is not a similarity from 0 to 1", c.Verify), "try --verify 0.7"}
	case !c.Near && c.Verify > 0:
		return &usageError{"--verify is of near-duplicates, which --no-near leaves in", "try one of them"}
	case !(c.NGramMin > 0 && c.NGramMin <= 1):
		return &usageError{fmt.Sprintf("--ngram-share %v is not a share from 0 to 1", c.NGramMin), "try --ngram-share 0.8"}
	case none && len(c.Exact) > 1:
		return &usageError{"--exact none stands beside others", "try one of them"}
	case none && !c.Near && !c.NGrams:
		return &usageError{"nothing to look for: --exact none, --no-near and no --ngrams", "try --exact document"}
	}
	return nil
}

func (c dataDedupCmd) Run(s *session) error {
	if err := c.check(); err != nil {
		return err
	}
	o := dedup.Options{MinWords: c.MinWords, Threads: int(c.Threads), Memory: int64(c.Memory), Verify: c.Verify, Out: c.Out}
	for _, name := range c.Exact {
		for _, u := range []dedup.Unit{dedup.Document, dedup.Paragraph, dedup.Line} {
			if u.String() == name {
				o.Units = append(o.Units, u)
			}
		}
	}
	if c.NGrams {
		o.NGrams = &dedup.Bloom{Words: c.NGramLen, Threshold: c.NGramMin, Memory: int64(c.Bloom)}
	}
	if c.Near {
		o.Near = &dedup.MinHash{Words: c.Words, Bands: c.Bands, Rows: c.Rows}
	}
	text := c.text(s, "comparing")
	r, err := corpus.Open(text.Paths, text.Options)
	if err != nil {
		return asData(err)
	}
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		rep, err := dedup.Run(ctx, o, func() iter.Seq2[corpus.Document, error] {
			return func(yield func(corpus.Document, error) bool) {
				for d, err := range r.Documents() {
					if !yield(d, err) {
						return
					}
					text.Progress(r.BytesRead(), r.Size())
				}
			}
		})
		if err != nil {
			return asData(err)
		}
		s.reportText(r.Report())
		rate := float64(rep.Bytes) / 1e6 / time.Since(start).Seconds()
		s.printf("kept %s of %s documents, %s of %s bytes; dropped %s as the same, %s as nearly the same, in %s clusters, the largest of %s\n",
			thousands(rep.Kept), thousands(rep.Documents), thousands(rep.KeptBytes), thousands(rep.Bytes), thousands(rep.Exact), thousands(rep.Near),
			thousands(int64(rep.Clusters)), thousands(int64(rep.LargestSize)))
		if o.Verify > 0 {
			s.printf("confirmed %s of %s pairs at similarity %.2f\n", thousands(rep.Confirmed), thousands(rep.Candidates), o.Verify)
		}
		if o.NGrams != nil {
			s.printf("dropped %s for their n-grams; %.1g of the look-ups were wrong at the end\n", thousands(rep.NGrams), rep.NGramError)
		}
		s.warnOfNGrams(rep, "--bloom")
		for _, u := range o.Units {
			if u != dedup.Document {
				s.printf("dropped %s repeated %ss\n", thousands(int64(rep.Units[u.String()])), u)
			}
		}
		if rep.Emptied > 0 {
			s.printf("%s documents held nothing else\n", thousands(rep.Emptied))
		}
		s.printf("%s/docs: %.1f MB/s, %s bytes sorted on disk\n", c.Out, rate, thousands(rep.Spilled))
		return s.emit(map[string]any{"out": c.Out, "dedup": rep, "corpus": r.Report(), "spilled_bytes": rep.Spilled, "mb_per_second": rate})
	})
}

// warnOfNGrams warns of a filter that was too small: it takes n-grams for seen that were not, and documents go for nothing.
func (s *session) warnOfNGrams(r dedup.Report, option string) {
	if r.NGramError > 0.1 {
		s.notef("warning: %s is too small: at the end %.1g of the n-grams that were new counted as seen, so that documents may have gone that were new; give it several times as much", option, r.NGramError)
	}
}
