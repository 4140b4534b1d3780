package curate

import (
	"context"
	"fmt"
	"sync"

	"anneal/corpus"
)

// origin is the input of the first pass, in splits.
type origin interface {
	count() int
	size(split int) int64      // bytes on disk
	identity(split int) string // hash of all inputs of the result besides the pipeline
	read(ctx context.Context, w *worker, split int) error
	listing() []corpus.Reject // items left out before any split is read
}

func newOrigin(o Options) (origin, error) {
	if o.Measured != "" {
		return openMeasured(o.Measured, o.Pipeline)
	}
	o.Read.Fields, o.Read.Out = true, o.Dir
	all, err := corpus.Open(o.Paths, o.Read)
	if err != nil {
		return nil, err
	}
	f := &files{all: all, splits: all.Splits(o.Split)}
	o.Read.OnReject, o.Read.Extensions, o.Read.Out = nil, nil, "" // only options that change the documents of a file
	how := fmt.Sprintf("%+v", o.Read)
	for _, s := range f.splits {
		f.identities = append(f.identities,
			sync.OnceValue(func() string { return fmt.Sprintf("%s %d %s", s.Identity(), s.First, how) }))
	}
	return f, nil
}

// files is the origin of an ordinary run: the files under Options.Paths.
type files struct {
	all        *corpus.Reader
	splits     []corpus.Split
	identities []func() string // computed on first use, which is before a split is read
}

func (f *files) count() int               { return len(f.splits) }
func (f *files) size(i int) int64         { return f.splits[i].Size }
func (f *files) identity(i int) string    { return f.identities[i]() }
func (f *files) listing() []corpus.Reject { return f.all.Listing() }

func (f *files) read(ctx context.Context, w *worker, i int) error {
	s := f.splits[i]
	in := s.Open(w.reject)
	before := int64(0)
	var long corpus.Report // on documents that cannot be written
	for d, err := range in.Documents() {
		if err == nil {
			err = ctx.Err()
		}
		if x := (item{Key{Source: d.File, Split: s.Part, Row: d.Index}, d}); err == nil && w.tooLong(x) {
			w.reject(d.LongOutput())
			long.Add(corpus.Count([]corpus.Reject{d.LongOutput()}))
		} else if err == nil {
			err = w.document(x)
		}
		if err != nil {
			return err
		}
		now := in.BytesRead()
		w.progress(now - before)
		before = now
		if w.full() {
			break
		}
	}
	w.progress(in.BytesRead() - before)
	w.tally.Input = in.Report()
	w.tally.Input.Undeliver(long)
	return w.rejectFault
}
