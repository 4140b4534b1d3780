package curate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"anneal/corpus"
)

// Options says what to curate and where to. The result depends on Paths, Read, Pipeline and the bytes alone.
type Options struct {
	Pipeline *Pipeline
	Paths    []string
	Read     corpus.Options
	Dir      string // docs/, signals/, the journals and the reports go here
	Workers  int    // 0 takes all processors
	Sample   int    // look at so many documents, spread over the input, and write nothing; 0 looks at all and writes

	TaskIndex, TaskCount int // this process does every TaskCount-th split from TaskIndex on; count 0 and 1 do all

	Progress func(read, total int64) // bytes on disk; called from any worker, one at a time; may be nil

	committed func(split int) error // a test stops here, where a split is done
}

// Outcome is what Run did.
type Outcome struct {
	Report  Report
	Done    int // splits that are done, by whatever process
	Splits  int
	Resumed int // of those, done before
	Changed int // splits done before whose input is another now: done again
}

// Run curates. Stopped at any instant and called again, it goes on behind the splits that are done. The reports are written
// when every split is done.
func Run(ctx context.Context, o Options) (Outcome, error) {
	if o.TaskCount > 1 && (o.TaskIndex < 0 || o.TaskIndex >= o.TaskCount) {
		return Outcome{}, fmt.Errorf("task %d of %d: tasks count from 0", o.TaskIndex, o.TaskCount)
	}
	all, err := corpus.Open(o.Paths, o.Read)
	if err != nil {
		return Outcome{}, err
	}
	splits := all.Splits(splitBytes)
	r := &runner{o: o, splits: splits, results: make([]*entry, len(splits))}
	out := Outcome{Splits: len(splits)}
	if o.Sample == 0 {
		for _, d := range []string{"docs", "signals"} {
			if d == "docs" || o.Pipeline.Signals {
				if err := os.MkdirAll(filepath.Join(o.Dir, d), 0o777); err != nil {
					return out, err
				}
			}
		}
		r.journal, err = openJournal(o.Dir, o.Pipeline, o.TaskIndex, o.TaskCount)
		if err != nil {
			return out, err
		}
		defer r.journal.close()
		out.Resumed, out.Changed = r.resume()
	}
	if err := r.work(ctx); err != nil {
		return out, err
	}
	out.Report = newReport(o.Pipeline)
	out.Report.listing(all.Listing())
	if o.Sample == 0 {
		r.resume() // what other tasks have done meanwhile
	}
	for _, e := range r.results {
		if e != nil {
			out.Done++
			out.Report.add(e.Tally)
		}
	}
	if o.Sample > 0 || out.Done < out.Splits {
		return out, nil
	}
	if out.Report.Documents == 0 {
		return out, fmt.Errorf("no documents in the input\n%s", out.Report.Left())
	}
	return out, r.finish(&out.Report)
}

// splitBytes is about how much of the input, on disk, is done as one. A variable for tests.
var splitBytes int64 = 16 << 20

type runner struct {
	o       Options
	splits  []corpus.Split
	results []*entry // nil: not done
	journal *journal
	read    atomic.Int64
	show    sync.Mutex
}

// work does what is left of this process's share, each worker a split at a time.
func (r *runner) work(ctx context.Context) error {
	var mine []int
	for i := range r.splits {
		if r.o.TaskCount > 1 && i%r.o.TaskCount != r.o.TaskIndex {
			continue
		}
		if r.results[i] == nil {
			mine = append(mine, i)
		}
	}
	mine = r.sampled(mine)
	total := int64(0)
	for _, i := range mine {
		total += r.splits[i].Size
	}
	workers := r.o.Workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(workers, len(mine)) {
		group.Go(func() {
			w := newWorker(r, total)
			for ctx.Err() == nil {
				at := int(next.Add(1)) - 1
				if at >= len(mine) {
					return
				}
				each := r.o.Sample*(at+1)/len(mine) - r.o.Sample*at/len(mine)
				e, err := w.split(ctx, mine[at], each)
				if err == nil && r.journal != nil {
					err = r.journal.append(e)
				}
				if err == nil && r.o.committed != nil {
					err = r.o.committed(mine[at])
				}
				if err != nil {
					cancel(err)
					return
				}
				r.results[mine[at]] = e
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// sampled takes as many splits as a sample can have documents, evenly.
func (r *runner) sampled(splits []int) []int {
	n := r.o.Sample
	if n == 0 || n >= len(splits) {
		return splits
	}
	some := make([]int, n)
	for i := range some {
		some[i] = splits[i*len(splits)/n]
	}
	return some
}

// resume takes over what the journals say is done and still is so.
func (r *runner) resume() (done, changed int) {
	entries := r.journal.read()
	for i, s := range r.splits {
		if r.results[i] != nil {
			continue
		}
		e := entries[i]
		switch {
		case e == nil:
		case e.Input != s.Identity():
			changed++
		case r.present(e):
			r.results[i] = e
			done++
		}
	}
	return done, changed
}

// present says whether the files of a split are there, in their sizes.
func (r *runner) present(e *entry) bool {
	for name, size := range e.Files {
		info, err := os.Stat(filepath.Join(r.o.Dir, filepath.FromSlash(name)))
		if err != nil || info.Size() != size {
			return false
		}
	}
	return true
}

// finish writes the reports and removes what no split of this input has made.
func (r *runner) finish(rep *Report) error {
	wanted := map[string]bool{}
	for _, e := range r.results {
		for name := range e.Files {
			wanted[name] = true
		}
	}
	for _, d := range []string{"docs", "signals"} {
		entries, err := os.ReadDir(filepath.Join(r.o.Dir, d))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, f := range entries {
			if !wanted[d+"/"+f.Name()] {
				if err := os.Remove(filepath.Join(r.o.Dir, d, f.Name())); err != nil {
					return err
				}
			}
		}
	}
	return rep.write(r.o.Dir)
}
