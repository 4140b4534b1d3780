package main

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"anneal/corpus"
	"anneal/dedup"
	"anneal/internal/machine"
	"anneal/internal/units"
)

type dataDedupCmd struct {
	textArgs
	lossFlags
	Out      string   `required:"" placeholder:"DIR" help:"Directory for the kept documents (DIR/docs) and the reports. It must be new or empty."`
	Exact    []string `default:"document" enum:"document,paragraph,line,none" help:"Units whose exact repeats are dropped: document, paragraph, line, several of them, or none."`
	MinWords int      `default:"3" placeholder:"N" help:"Keep repeated paragraphs and lines with fewer words than this."`
	Near     bool     `default:"true" negatable:"" help:"Also drop documents that are nearly identical to an earlier one (MinHash)."`
	Words    int      `default:"5" placeholder:"N" help:"Words in the n-grams that MinHash compares."`
	Bands    int      `default:"14" placeholder:"N" help:"MinHash bands. More bands also find less similar documents."`
	Rows     int      `default:"8" placeholder:"N" help:"MinHash rows per band. More rows require greater similarity."`
	Verify   float64  `placeholder:"S" help:"Read near-duplicates once more, and drop them only if their similarity is at least S, such as 0.7."`
	NGrams   bool     `name:"ngrams" help:"Also drop documents whose n-grams of words were mostly seen before (Bloom filter)."`
	NGramLen int      `name:"ngram-words" default:"13" placeholder:"N" help:"Words in an n-gram of --ngrams."`
	NGramMin float64  `name:"ngram-share" default:"0.8" placeholder:"S" help:"Drop a document if this share of its n-grams was seen before."`
	Bloom    byteSize `default:"256MiB" placeholder:"SIZE" help:"Memory of the Bloom filter; 4 bytes per n-gram are plenty. It changes the result slightly."`
	Memory   autoSize `default:"auto" placeholder:"SIZE" help:"Memory for sorting, such as 4GiB. What does not fit goes to disk, with the same result. auto: 1 GiB, or the available memory if that is less."`
	threadsFlag
}

func (dataDedupCmd) Help() string {
	return example("anneal data dedup --out clean pages.jsonl.zst",
		"anneal data dedup --out clean --exact document,paragraph --memory 4GiB crawl/",
		"anneal data dedup --out clean --no-near --exact line --min-words 5 crawl/") + `

Near-duplicates with similarity s of their sets of n-grams are found with probability
1 − (1 − s^rows)^bands: by default 0.56 at s = 0.7, 0.92 at 0.8, 0.9996 at 0.9.
The first of similar documents stays. N-grams, paragraphs and lines are then compared in the documents that stay. Documents keep
their other fields (id, url, date, …). The result does not depend on --threads or --memory.`
}

// options returns the options of dedup.Run.
func (c dataDedupCmd) options() (dedup.Options, error) {
	o, err := dedup.Settings{
		Exact: c.Exact, MinWords: c.MinWords, Near: c.Near, Words: c.Words, Bands: c.Bands, Rows: c.Rows,
		Verify: c.Verify, NGrams: c.NGrams, NGramWords: c.NGramLen, NGramShare: c.NGramMin, NGramBytes: int64(c.Bloom),
	}.Options(dedupFlag)
	if err != nil {
		return o, asUsage(err)
	}
	o.Threads, o.Out = int(c.Threads), c.Out
	return o, nil
}

// dedupFlag writes an option of dedup.Settings as a flag.
func dedupFlag(option string, value any) string {
	name := strings.ReplaceAll(option, "_", "-")
	if option == "ngram_mib" {
		name = "bloom"
	}
	switch v := value.(type) {
	case nil:
		return "--" + name
	case bool:
		if !v {
			return "--no-" + name
		}
		return "--" + name
	case []string:
		return "--" + name + " " + strings.Join(v, ",")
	}
	return fmt.Sprintf("--%s %v", name, value)
}

// plan divides the available memory into bytes for sorting and a limit for the heap; available is 0 if unknown. If the
// memory does not suffice, the error is a *machine.RoomError.
func (c dataDedupCmd) plan(available int64) (sorting, heap int64, err error) {
	workers := cmp.Or(int64(c.Threads), int64(runtime.GOMAXPROCS(0))) * workerMemory
	filter := int64(0)
	if c.NGrams {
		filter = int64(c.Bloom)
	}
	sorting = cmp.Or(int64(c.Memory), dedup.LeastSorting)
	err = machine.Room(available,
		machine.Part{What: "the process", Bytes: processMemory},
		machine.Part{What: "its workers", Bytes: workers, Flag: "--threads"},
		machine.Part{What: "the filter of n-grams", Bytes: filter, Flag: "--bloom"},
		machine.Part{What: "sorting", Bytes: sorting, Flag: "--memory"})
	if err != nil {
		return 0, 0, err
	}
	switch {
	case available == 0:
		return cmp.Or(int64(c.Memory), dedup.CommonSorting), math.MaxInt64, nil
	case c.Memory == 0:
		sorting = min(dedup.CommonSorting, max(sorting, machine.Most(available)-processMemory-workers-filter))
	}
	return sorting, machine.Most(available) - filter - programMemory, nil
}

func (c dataDedupCmd) Run(s *session) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	var heap int64
	if o.Memory, heap, err = c.plan(availableMemory()); err != nil {
		return err
	}
	defer limitHeap(heap)()
	text := c.text(s, "comparing")
	text.Options.Out = c.Out
	r, err := corpus.Open(text.Paths, text.Options)
	if err != nil {
		return asData(err)
	}
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		o.Input = r.Report
		rep, err := dedup.Run(ctx, o, func(fields bool) iter.Seq2[corpus.Document, error] {
			r.KeepFields(fields)
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
		took := time.Since(start)
		c.print(s, o, rep, took)
		input := *rep.Input
		rep.Input = nil // it is printed under "corpus"
		return s.finish(c.lossFlags, input, filepath.Join(c.Out, "report.json"),
			"remove "+c.Out+" and give the same command again",
			map[string]any{
				"out": c.Out, "dedup": rep, "corpus": input, "spilled_bytes": rep.Spilled,
				"mb_per_second": float64(rep.Bytes) / 1e6 / took.Seconds(), "seconds": took.Seconds(),
			})
	})
}

func (c dataDedupCmd) print(s *session, o dedup.Options, rep dedup.Report, took time.Duration) {
	s.reportText(*rep.Input)
	s.printf("dropped %s exact duplicates and %s near-duplicates; %s",
		units.Commas(rep.Exact), units.Commas(rep.Near), units.Count(rep.Clusters, "cluster"))
	if rep.Clusters > 0 {
		s.printf(", the largest of %s", units.Count(rep.LargestSize, "document"))
	}
	s.printf("\n")
	if o.Verify > 0 {
		s.printf("confirmed %s of %s candidate pairs at similarity %.2f\n",
			units.Commas(rep.Confirmed), units.Commas(rep.Candidates), o.Verify)
	}
	if o.NGrams != nil {
		s.printf("dropped %s for repeated n-grams; %.1g of the look-ups were false positives at the end\n",
			units.Count(int(rep.NGrams), "document"), rep.NGramError)
	}
	s.warnOfNGrams(rep, "--bloom")
	for _, u := range o.Units {
		if u != dedup.Document {
			s.printf("dropped %s\n", units.Count(rep.Units[u.String()], "repeated "+u.String()))
		}
	}
	if rep.Emptied > 0 {
		s.printf("dropped %s that were empty after that\n", units.Count(int(rep.Emptied), "document"))
	}
	if rep.Spilled > 0 {
		s.printf("sorted %s on disk\n", units.FormatSize(rep.Spilled))
	}
	kept := fmt.Sprintf("kept %s of %s, %s of %s of text, %.1f MB/s",
		units.Commas(rep.Kept), units.Count(int(rep.Documents), "document"), units.FormatSize(rep.KeptBytes),
		units.FormatSize(rep.Bytes), float64(rep.Bytes)/1e6/took.Seconds())
	s.closing(kept, c.Out, took, c.next(*rep.Input,
		command("anneal", "tokenizer", "train", "--vocab", "8192", "--out", "tok.json", filepath.Join(c.Out, "docs"))))
}

// warnOfNGrams warns if the filter was too small: it then takes new n-grams for seen ones and drops new documents.
func (s *session) warnOfNGrams(r dedup.Report, option string) {
	if r.NGramError > 0.1 {
		s.warn(fmt.Sprintf("%s is too small: at the end %.0f %% of new n-grams counted as seen, so new documents may "+
			"have been dropped; give it several times as much", option, 100*r.NGramError))
	}
}
