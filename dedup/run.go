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
	"sync"

	"github.com/zeebo/xxh3"

	"anneal/corpus"
)

// Options says what Run does.
type Options struct {
	Near     *MinHash // near-duplicate documents; nil leaves them in
	Verify   float64  // exact Jaccard similarity that near-duplicates must have; 0 believes MinHash, and saves a reading
	Units    []Unit   // what is compared exactly
	NGrams   *Bloom   // documents of n-grams that came before; nil leaves them in
	MinWords int      // of a paragraph or line to be dropped; default 1
	Memory   int64    // bytes for sorting; default 1 GiB
	Threads  int      // workers; default all processors. The result is the same
	Out      string   // directory, made by Run; it must not exist or be empty
}

// Report accounts for a Run.
type Report struct {
	Documents   int64          `json:"documents"`
	Bytes       int64          `json:"bytes"` // of text
	Kept        int64          `json:"kept_documents"`
	KeptBytes   int64          `json:"kept_bytes"`
	Exact       int64          `json:"exact_documents"`           // dropped as the same as an earlier one
	Near        int64          `json:"near_documents"`            // dropped as nearly the same, above the exact ones
	NGrams      int64          `json:"ngram_documents"`           // dropped for n-grams that came before
	NGramError  float64        `json:"ngram_false_positives"`     // probability at the end, by the formula
	Candidates  int64          `json:"near_candidates,omitempty"` // pairs that were verified
	Confirmed   int64          `json:"near_confirmed,omitempty"`  // of these
	Emptied     int64          `json:"emptied_documents"`
	Clusters    int            `json:"clusters"`     // of documents
	LargestSize int            `json:"largest_size"` // documents in the largest of them
	Units       map[string]int `json:"units"`        // dropped, by kind
	Spilled     int64          `json:"-"`            // bytes that went to disk; not in the file, for it depends on Memory
}

// Run reads the documents, twice and once more for each of Verify, NGrams and parts, and leaves in o.Out what came for the first time, docs/docs-*.jsonl.zst, with a
// line of clusters.jsonl for each document that has a duplicate, and report.json. The directory appears when it is
// complete.
//
// Documents are compared first, all of them; then n-grams, then paragraphs and lines, each in what stays, so that nothing
// disappears because of a text that is itself dropped before.
func Run(ctx context.Context, o Options, documents func() iter.Seq2[corpus.Document, error]) (Report, error) {
	if o.Memory <= 0 {
		o.Memory = 1 << 30
	}
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	if entries, err := os.ReadDir(o.Out); err == nil && len(entries) > 0 {
		return Report{}, fmt.Errorf("%s holds files already\n  name a directory that does not exist, or remove it first", o.Out)
	}
	tmp := filepath.Clean(o.Out) + ".partial" // what a killed run leaves is removed by the next
	if err := os.RemoveAll(tmp); err != nil {
		return Report{}, err
	}
	if err := os.MkdirAll(tmp, 0o777); err != nil {
		return Report{}, err
	}
	defer os.RemoveAll(tmp)
	r := &run{o: o, documents: documents, tmp: tmp, report: Report{Units: map[string]int{}}}
	if err := r.all(ctx); err != nil {
		return Report{}, cmp.Or(ctx.Err(), err)
	}
	os.Remove(o.Out) // if it is there, empty
	return r.report, os.Rename(tmp, o.Out)
}

type run struct {
	o         Options
	documents func() iter.Seq2[corpus.Document, error]
	tmp       string
	report    Report
	chain     uint64 // hash of all texts, in order
	clusters  *Clusters
	repeated  []uint64 // documents dropped for their n-grams, in order
}

// stays says whether a document is not dropped as a whole.
func (r *run) stays(document uint64) bool {
	if first, _ := r.clusters.Of(document); first != document {
		return false
	}
	_, dropped := slices.BinarySearch(r.repeated, document)
	return !dropped
}

func (r *run) all(ctx context.Context) error {
	if err := r.compareDocuments(ctx); err != nil {
		return err
	}
	if r.o.NGrams != nil {
		if err := r.compareNGrams(ctx); err != nil {
			return err
		}
	}
	var parts []*Exact
	for _, u := range r.o.Units {
		if u != Document {
			e := NewExact(u, r.o.MinWords, r.o.Memory/int64(len(r.o.Units)), r.tmp)
			defer e.Close()
			parts = append(parts, e)
		}
	}
	if len(parts) > 0 {
		if err := r.compareParts(ctx, parts); err != nil {
			return err
		}
	}
	return r.write(ctx, parts)
}

// compareDocuments finds clusters of documents.
func (r *run) compareDocuments(ctx context.Context) error {
	pairs := NewPairs(r.o.Memory/8, r.tmp)
	defer pairs.Close()
	var exact *Exact
	if slices.Contains(r.o.Units, Document) {
		exact = NewExact(Document, 0, r.o.Memory/8, r.tmp)
		defer exact.Close()
	}
	var near *Near
	if r.o.Near != nil {
		var err error
		if near, err = NewNear(*r.o.Near, r.o.Memory*3/4, r.tmp); err != nil {
			return err
		}
		defer near.Close()
	}
	err := r.each(ctx, func() (func(uint64, []byte) error, error) {
		var add []func(uint64, []byte) error
		if exact != nil {
			add = append(add, exact.NewHasher().Add)
		}
		if near != nil {
			s, err := r.o.Near.NewSigner()
			if err != nil {
				return nil, err
			}
			add = append(add, func(d uint64, text []byte) error { return near.Add(d, s.Keys(text)) })
		}
		return func(d uint64, text []byte) error {
			for _, f := range add {
				if err := f(d, text); err != nil {
					return err
				}
			}
			return nil
		}, nil
	})
	if err != nil {
		return err
	}
	if exact != nil {
		repeats, err := exact.Repeats()
		if err != nil {
			return err
		}
		for x, err := range repeats {
			if err == nil {
				err = pairs.Add(x.First, x.Document)
			}
			if err != nil {
				return err
			}
			r.report.Exact++
		}
		r.report.Spilled += exact.Spilled()
	}
	if near != nil {
		if err := r.linkNear(ctx, near, pairs); err != nil {
			return err
		}
		r.report.Spilled += near.Spilled()
	}
	if r.clusters, err = NewClusters(pairs.All()); err != nil {
		return err
	}
	clusters, dropped := r.clusters.Counts()
	r.report.Clusters, r.report.Near = clusters, int64(dropped)-r.report.Exact
	for c := range r.clusters.All() {
		r.report.LargestSize = max(r.report.LargestSize, c.Size)
	}
	r.report.Spilled += pairs.Spilled()
	return nil
}

// linkNear adds near-duplicates to pairs, verified if that is asked for.
func (r *run) linkNear(ctx context.Context, near *Near, pairs *Pairs) error {
	if r.o.Verify <= 0 {
		return near.Link(pairs, r.o.Threads)
	}
	candidates := NewPairs(r.o.Memory/8, r.tmp)
	defer candidates.Close()
	if err := near.Link(candidates, r.o.Threads); err != nil {
		return err
	}
	v, err := NewVerifier(candidates.All(), r.tmp)
	if err != nil {
		return err
	}
	defer v.Close()
	err = r.each(ctx, func() (func(uint64, []byte) error, error) {
		s, err := r.o.Near.NewSigner()
		return func(d uint64, text []byte) error { return v.Add(d, text, s) }, err
	})
	if err != nil {
		return err
	}
	for range candidates.All() {
		r.report.Candidates++
	}
	for p, err := range v.Confirm(candidates.All(), r.o.Verify) {
		if err == nil {
			err = pairs.Add(p.A, p.B)
		}
		if err != nil {
			return err
		}
		r.report.Confirmed++
	}
	r.report.Spilled += candidates.Spilled()
	return nil
}

// batchBytes is how much text the filter of n-grams takes at once.
const batchBytes = 8 << 20

// compareNGrams passes the documents that stay through a Bloom filter, in order.
func (r *run) compareNGrams(ctx context.Context) error {
	f, err := r.o.NGrams.NewFilter(r.o.Threads)
	if err != nil {
		return err
	}
	defer f.Close()
	var numbers []uint64
	var texts [][]byte
	var shares []float64
	size := 0
	flush := func() {
		shares = f.Shares(shares[:0], texts)
		for i, s := range shares {
			if s >= f.cfg.Threshold {
				r.repeated = append(r.repeated, numbers[i])
			}
		}
		numbers, texts, size = numbers[:0], texts[:0], 0
	}
	err = r.read(ctx, func(n uint64, d corpus.Document) error {
		if first, _ := r.clusters.Of(n); first != n {
			return nil
		}
		numbers, texts, size = append(numbers, n), append(texts, d.Text), size+len(d.Text)
		if size >= batchBytes {
			flush()
		}
		return nil
	})
	flush()
	r.report.NGrams, r.report.NGramError = int64(len(r.repeated)), f.FalsePositives()
	return err
}

// compareParts hashes the paragraphs and lines of the documents that stay.
func (r *run) compareParts(ctx context.Context, parts []*Exact) error {
	return r.each(ctx, func() (func(uint64, []byte) error, error) {
		var hashers []*ExactHasher
		for _, e := range parts {
			hashers = append(hashers, e.NewHasher())
		}
		return func(d uint64, text []byte) error {
			if !r.stays(d) {
				return nil
			}
			for _, h := range hashers {
				if err := h.Add(d, text); err != nil {
					return err
				}
			}
			return nil
		}, nil
	})
}

// numbered is a document with its place in the order.
type numbered struct {
	number uint64
	text   []byte
}

// each hands every document to one of several workers, in no order.
func (r *run) each(ctx context.Context, worker func() (func(uint64, []byte) error, error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan numbered, 4*r.o.Threads)
	var wg sync.WaitGroup
	for range r.o.Threads {
		work, err := worker()
		if err != nil {
			cancel(err)
			break
		}
		wg.Go(func() {
			for d := range queue {
				if err := work(d.number, d.text); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	err := r.read(ctx, func(n uint64, d corpus.Document) error {
		select {
		case queue <- numbered{n, d.Text}:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	close(queue)
	wg.Wait()
	return cmp.Or(err, context.Cause(ctx))
}

// read reads all documents, and makes sure that they are the same each time.
func (r *run) read(ctx context.Context, f func(n uint64, d corpus.Document) error) error {
	n, chain, bytes := uint64(0), uint64(0), int64(0)
	for d, err := range r.documents() {
		if err = cmp.Or(err, context.Cause(ctx)); err != nil {
			return err
		}
		chain = fold64(chain^xxh3.Hash(d.Text), k1) + n
		bytes += int64(len(d.Text))
		if err := f(n, d); err != nil {
			return err
		}
		n++
	}
	if r.report.Documents > 0 && (chain != r.chain || int64(n) != r.report.Documents) {
		return fmt.Errorf("the input changed while it was read: %d documents, then %d\n  let nothing write to it, and start again", r.report.Documents, n)
	}
	r.report.Documents, r.report.Bytes, r.chain = int64(n), bytes, chain
	return nil
}

// clusterLine is a line of clusters.jsonl.
type clusterLine struct {
	Document uint64 `json:"document"` // number, from 0
	Source   string `json:"source"`
	Index    int    `json:"index"`
	Kept     uint64 `json:"kept"` // number of the document of the cluster that is kept
	Size     int    `json:"size"` // documents in the cluster
}

// write writes what stays.
func (r *run) write(ctx context.Context, parts []*Exact) error {
	var cuts []*cuts
	for _, e := range parts {
		c, err := newCuts(e)
		if err != nil {
			return err
		}
		defer c.stop()
		cuts = append(cuts, c)
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
	err = r.read(ctx, func(n uint64, d corpus.Document) error {
		first, size := r.clusters.Of(n)
		if size > 1 {
			if err := enc.Encode(clusterLine{n, d.Source, d.Index, first, size}); err != nil {
				return err
			}
		}
		if !r.stays(n) {
			return nil
		}
		for _, c := range cuts {
			if err := c.mark(n, d.Text); err != nil {
				return err
			}
		}
		d.Text = cutOut(d.Text, cuts)
		if len(bytes.TrimSpace(d.Text)) == 0 {
			r.report.Emptied++
			return nil
		}
		r.report.Kept++
		r.report.KeptBytes += int64(len(d.Text))
		return w.Write(d)
	})
	for _, c := range cuts {
		r.report.Units[c.exact.unit.String()] = c.count
		r.report.Spilled += c.exact.Spilled()
	}
	if err := errors.Join(err, w.Close(), lines.Flush(), list.Close()); err != nil {
		return err
	}
	b, err := json.MarshalIndent(r.report, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.tmp, "report.json"), append(b, '\n'), 0o666)
}
