package dedup

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"anneal/corpus"
	"anneal/internal/fileio"
)

// Options configures Run.
type Options struct {
	Near *MinHash // drop near-duplicate documents; nil keeps them
	// smallest exact Jaccard similarity of near-duplicates; 0 trusts MinHash and saves a reading
	Verify   float64
	Units    []Unit               // units that are compared exactly
	NGrams   *Bloom               // drop documents whose n-grams were mostly seen before; nil keeps them
	MinWords int                  // words of the shortest paragraph or line that is dropped; default 1
	Memory   int64                // bytes for sorting; default 1 GiB
	Threads  int                  // workers; default all processors. The result is the same
	Input    func() corpus.Report // the report on the last reading; may be nil
	Out      string               // directory, made by Run; it must not exist, or must be empty
}

// Bytes for sorting.
const (
	LeastSorting  = 16 << 20 // the least that a plan of memory gives
	CommonSorting = 1 << 30  // what it gives if that much is available
)

func (o Options) withDefaults() Options {
	if o.Memory <= 0 {
		o.Memory = CommonSorting
	}
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	return o
}

// check returns an error for options that would silently keep everything, or that do not exist.
func (o Options) check() error {
	for _, u := range o.Units {
		if u < Document || u > Line {
			return fmt.Errorf("unit %d does not exist\n  try Document, Paragraph or Line", int(u))
		}
	}
	if !(o.Verify >= 0 && o.Verify <= 1) {
		return fmt.Errorf("verification needs a similarity of 0 to 1, not %v\n  try 0.8, or 0 to trust MinHash",
			o.Verify)
	}
	if o.NGrams != nil {
		return o.NGrams.check()
	}
	return nil
}

// Readings returns how often the documents are read for the decisions.
func (o Options) Readings() int {
	n := 1
	if o.Near != nil && o.Verify > 0 {
		n++
	}
	if o.NGrams != nil {
		n++
	}
	if slices.ContainsFunc(o.Units, func(u Unit) bool { return u != Document }) {
		n++
	}
	return n
}

// Report accounts for a Run.
type Report struct {
	Documents int64 `json:"documents"`
	Bytes     int64 `json:"bytes"` // of text
	Kept      int64 `json:"kept_documents"`
	KeptBytes int64 `json:"kept_bytes"`
	Exact     int64 `json:"exact_documents"` // dropped because an earlier document is the same
	// dropped because an earlier document is nearly the same; without exact duplicates
	Near        int64          `json:"near_documents"`
	NGrams      int64          `json:"ngram_documents"`           // dropped because their n-grams were seen before
	NGramError  float64        `json:"ngram_false_positives"`     // false positives at the end, by the formula
	Candidates  int64          `json:"near_candidates,omitempty"` // pairs that were verified
	Confirmed   int64          `json:"near_confirmed,omitempty"`  // of these
	Emptied     int64          `json:"emptied_documents"`
	Clusters    int            `json:"clusters"`     // of documents
	LargestSize int            `json:"largest_size"` // documents in the largest cluster
	Units       map[string]int `json:"units"`        // dropped, by kind
	// bytes that went to disk; not in report.json, because it depends on Memory
	Spilled int64 `json:"-"`

	Input *corpus.Report `json:"input,omitempty"` // what was read, left out and lost; from Options.Input
}

// Run drops repeated documents and writes the rest to o.Out: docs/docs-*.jsonl.zst with all fields of the documents, a
// line in clusters.jsonl for each document that has a duplicate, and report.json. The directory appears when it is
// complete.
//
// Run reads the documents twice, and once more for each of Verify, NGrams, and paragraphs or lines. documents is
// called for each reading and must deliver the same documents each time, with their fields if fields is true.
//
// All documents are compared first; then n-grams, then paragraphs and lines, each only in the documents that remain. So
// no n-gram, paragraph or line counts as seen because of a duplicate that an earlier comparison dropped. But the first
// of similar documents may itself be dropped, or lose its lines, in a later comparison; its duplicates do not return.
func Run(ctx context.Context, o Options,
	documents func(fields bool) iter.Seq2[corpus.Document, error]) (Report, error) {
	r, err := newRun(o, documents)
	if err == nil && o.Out == "" {
		err = errors.New("there is no directory for the documents that remain\n  name one in Options.Out")
	}
	if err != nil {
		return Report{}, err
	}
	err = fileio.Dir(o.Out, func(tmp string) error {
		r.tmp = tmp
		defer r.decided.Close()
		if err := r.all(ctx); err != nil {
			return err
		}
		return r.write(ctx)
	})
	if err != nil {
		return Report{}, cmp.Or(ctx.Err(), err)
	}
	return r.report, nil
}

// clusterLine is a line of clusters.jsonl.
type clusterLine struct {
	Document uint64 `json:"document"` // number, from 0
	Source   string `json:"source"`
	Index    int    `json:"index"`
	Kept     uint64 `json:"kept"` // number of the cluster's kept document
	Size     int    `json:"size"` // documents in the cluster
}

// write writes the remaining documents.
func (r *run) write(ctx context.Context) error {
	next, stop := iter.Pull2(r.decided.All())
	defer stop()
	decision, err, more := next()
	if err != nil {
		return err
	}
	list, err := os.Create(filepath.Join(r.tmp, "clusters.jsonl"))
	if err != nil {
		return err
	}
	defer list.Close()
	lines := bufio.NewWriter(list)
	enc := json.NewEncoder(lines)
	enc.SetEscapeHTML(false)
	docs := filepath.Join(r.tmp, "docs")
	if err := os.Mkdir(docs, 0o777); err != nil {
		return err
	}
	w := corpus.NewWriter(docs, 0)
	defer w.Close()
	var long corpus.Report // on documents that cannot be written
	err = r.read(ctx, true, func(n uint64, d corpus.Document) error {
		if more && decision.Document == n {
			if decision.Size > 1 {
				if err := enc.Encode(clusterLine{n, d.Source, d.Index, decision.First, decision.Size}); err != nil {
					return err
				}
			}
			dropped := decision.Drop != 0
			d.Text = CutOut(d.Text, decision.Cuts)
			for _, c := range decision.Cuts {
				r.report.Units[c.Unit.String()]++
			}
			if decision, err, more = next(); err != nil || dropped {
				return err
			}
		}
		if len(bytes.TrimSpace(d.Text)) == 0 {
			r.report.Emptied++
			return nil
		}
		if err := w.Write(d); errors.Is(err, corpus.ErrLongOutput) {
			long.Add(corpus.Count([]corpus.Reject{d.LongOutput()}))
			return nil
		} else if err != nil {
			return err
		}
		r.report.Kept++
		r.report.KeptBytes += int64(len(d.Text))
		return nil
	})
	if err := errors.Join(err, w.Close(), lines.Flush(), list.Close()); err != nil {
		return err
	}
	if r.o.Input != nil {
		in := r.o.Input()
		in.Undeliver(long)
		r.report.Input = &in
	}
	b, err := json.MarshalIndent(r.report, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.tmp, "report.json"), append(b, '\n'), 0o666)
}
