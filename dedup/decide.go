package dedup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/zeebo/xxh3"

	"anneal/corpus"
)

// Decide is Run without the output: it returns which documents and units to drop, and a Report without the figures of
// the output. Temporary files go to dir. documents must deliver the same documents each time it is called.
func Decide(ctx context.Context, o Options, dir string,
	documents func(fields bool) iter.Seq2[corpus.Document, error]) (*Decisions, Report, error) {
	r, err := newRun(o, documents)
	if err != nil {
		return nil, Report{}, err
	}
	r.tmp = dir
	if err := r.all(ctx); err != nil {
		r.decided.Close()
		return nil, Report{}, cmp.Or(ctx.Err(), err)
	}
	return r.decided, r.report, nil
}

// run compares documents.
type run struct {
	o         Options
	documents func(fields bool) iter.Seq2[corpus.Document, error]
	tmp       string
	report    Report
	chain     uint64 // hash of all texts, in order
	decided   *Decisions
}

func newRun(o Options, documents func(fields bool) iter.Seq2[corpus.Document, error]) (*run, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if documents == nil {
		return nil, errors.New("there are no documents to compare\n  pass a function that reads them")
	}
	return &run{
		o: o.withDefaults(), documents: documents, report: Report{Units: map[string]int{}}, decided: new(Decisions),
	}, nil
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
			parts = append(parts, r.decided.exact(u, r.o.MinWords, r.o.Memory/int64(len(r.o.Units)), r.tmp))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	if err := r.compareParts(ctx, parts); err != nil {
		return err
	}
	for _, e := range parts {
		if err := r.decided.repeat(e); err != nil {
			return err
		}
		r.report.Spilled += e.Spilled()
	}
	return nil
}

// compareDocuments finds clusters of documents.
func (r *run) compareDocuments(ctx context.Context) error {
	pairs := NewPairs(r.o.Memory/8, r.tmp)
	defer pairs.Close()
	var exact *Exact
	if slices.Contains(r.o.Units, Document) {
		exact = r.decided.exact(Document, 0, r.o.Memory/8, r.tmp)
	}
	var near *Near
	if r.o.Near != nil {
		var err error
		if near, err = NewNear(*r.o.Near, r.o.Memory*3/4, r.tmp); err != nil {
			return err
		}
		defer near.Close()
	}
	if err := r.each(ctx, func() (func(uint64, []byte) error, error) { return r.adder(exact, near) }); err != nil {
		return err
	}
	if exact != nil {
		if err := r.linkExact(exact, pairs); err != nil {
			return err
		}
	}
	if near != nil {
		if err := r.linkNear(ctx, near, pairs); err != nil {
			return err
		}
		r.report.Spilled += near.Spilled()
	}
	var err error
	if r.decided.clusters, err = NewClusters(pairs.All()); err != nil {
		return err
	}
	clusters, dropped := r.decided.clusters.Counts()
	r.report.Clusters, r.report.Near = clusters, int64(dropped)-r.report.Exact
	for c := range r.decided.clusters.All() {
		r.report.LargestSize = max(r.report.LargestSize, c.Size)
	}
	r.report.Spilled += pairs.Spilled()
	return nil
}

// adder returns a function that adds documents to exact and near, either of which may be nil. Each worker has its own.
func (r *run) adder(exact *Exact, near *Near) (func(d uint64, text []byte) error, error) {
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
}

// linkExact adds the pairs of equal documents.
func (r *run) linkExact(exact *Exact, pairs *Pairs) error {
	if err := r.decided.repeat(exact); err != nil {
		return err
	}
	for x, err := range r.decided.repeats[0] {
		if err == nil {
			err = pairs.Add(x.First, x.Document)
		}
		if err != nil {
			return err
		}
		r.report.Exact++
	}
	r.report.Spilled += exact.Spilled()
	return nil
}

// linkNear adds near-duplicates to pairs, verified if Options.Verify is set.
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

// batchBytes is the amount of text that the filter of n-grams processes at once.
const batchBytes = 8 << 20

// compareNGrams passes the remaining documents through a Bloom filter, in order.
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
				r.decided.repeated = append(r.decided.repeated, numbers[i])
			}
		}
		numbers, texts, size = numbers[:0], texts[:0], 0
	}
	err = r.read(ctx, false, func(n uint64, d corpus.Document) error {
		if first, _ := r.decided.clusters.Of(n); first != n {
			return nil
		}
		numbers, texts, size = append(numbers, n), append(texts, d.Text), size+len(d.Text)
		if size >= batchBytes {
			flush()
		}
		return nil
	})
	flush()
	r.report.NGrams, r.report.NGramError = int64(len(r.decided.repeated)), f.FalsePositives()
	return err
}

// compareParts hashes the paragraphs and lines of the remaining documents.
func (r *run) compareParts(ctx context.Context, parts []*Exact) error {
	return r.each(ctx, func() (func(uint64, []byte) error, error) {
		var hashers []*ExactHasher
		for _, e := range parts {
			hashers = append(hashers, e.NewHasher())
		}
		return func(d uint64, text []byte) error {
			if !r.decided.stays(d) {
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

// each passes every document to one of several workers, in no particular order.
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
	err := r.read(ctx, false, func(n uint64, d corpus.Document) error {
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

// read reads all documents, with or without their fields, and checks that they are the same each time.
func (r *run) read(ctx context.Context, fields bool, f func(n uint64, d corpus.Document) error) error {
	n, chain, bytes := uint64(0), uint64(0), int64(0)
	for d, err := range r.documents(fields) {
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
		return fmt.Errorf("the input changed while it was read: %d documents, then %d\n"+
			"  start again when nothing writes to it", r.report.Documents, n)
	}
	r.report.Documents, r.report.Bytes, r.chain = int64(n), bytes, chain
	return nil
}
