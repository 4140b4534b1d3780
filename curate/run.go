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
	"syscall"
	"time"

	"anneal/corpus"
)

// Options says what to curate and where to write the result. The result depends only on Paths, Read, Pipeline and the
// bytes of the input.
type Options struct {
	Pipeline *Pipeline
	Paths    []string
	Read     corpus.Options
	Measured string // directory of an earlier Run: apply the pipeline to its texts and signals instead of Paths
	Dir      string // docs/, signals/, the journals and the reports go here
	Workers  int    // 0 means all processors
	// limit in bytes, see Plan; 0: as much as needed, and for deduplication 1 GiB more or what is available
	Memory    int64
	Available int64 // bytes of free memory; 0 if unknown
	// size of a unit of work in bytes on disk, about; a crash loses one per worker. Default 16 MiB. Each split becomes
	// one shard
	Split  int64
	Sample int // look at this many documents, spread over the input, and write nothing; 0 for a whole run

	// this process handles every TaskCount-th split, from TaskIndex on; with a count of 0 or 1 it handles all
	TaskIndex, TaskCount int
	Wait                 time.Duration // how long to wait for other tasks between passes; 0 waits forever

	Progress func(what string, read, total int64) // bytes on disk; called from any worker, one at a time; may be nil
	Waiting  func(what string)                    // called now and then while this process waits; may be nil

	committed func(p place) error // tests stop a run here, after a split
}

// Outcome is the result of Run.
type Outcome struct {
	Report  Report
	Passes  int
	Splits  int // of all passes
	Done    int // finished splits, by all processes
	Resumed int // done before
	Changed int // splits that were repeated because their input changed
}

// ErrWaited means that other tasks did not finish in time.
var ErrWaited = errors.New("waited for other tasks")

// Run curates the input. If it is stopped at any moment and called again, it continues after the finished splits. The
// reports are written when every split is finished.
func Run(ctx context.Context, o Options) (out Outcome, err error) {
	if o.Pipeline == nil {
		return out, errors.New("there is no Pipeline\n  read one with Parse")
	}
	if o.TaskCount > 1 && (o.TaskIndex < 0 || o.TaskIndex >= o.TaskCount) {
		return out, fmt.Errorf("task %d of %d: tasks count from 0", o.TaskIndex, o.TaskCount)
	}
	if o.Split <= 0 {
		o.Split = 16 << 20
	}
	r := &runner{o: o, passes: o.Pipeline.passes}
	if r.memory, err = o.Plan(); err != nil {
		return out, err
	}
	if o.Sample > 0 {
		r.o.TaskIndex, r.o.TaskCount = 0, 1
		if r.o.Dir, err = os.MkdirTemp("", "anneal-sample-*"); err != nil {
			return out, err
		}
		defer os.RemoveAll(r.o.Dir)
	}
	if r.origin, err = newOrigin(o); err != nil {
		return out, err
	}
	r.sample()
	if err := os.MkdirAll(r.o.Dir, 0o777); err != nil {
		return out, err
	}
	if r.journal, err = openJournal(r.o); err != nil {
		return out, o.taught(err)
	}
	defer r.journal.close()
	out.Passes, out.Splits = len(r.passes), len(r.splits)*len(r.passes)
	r.journal.follow()
	r.state = newState(len(r.passes), len(r.splits))
	if !r.finished() {
		_ = os.Remove(filepath.Join(r.o.Dir, endFile))
		r.survey(&r.state, true)
		out.Resumed, out.Changed = r.state.done(), r.changed()
		if err := r.all(ctx); err != nil {
			return out, o.taught(err)
		}
	} else {
		out.Resumed = r.state.done()
	}
	out.Done = r.state.done()
	if out.Report, err = r.report(); err != nil {
		return out, err
	}
	if out.Done < out.Splits || o.Sample > 0 {
		return out, nil
	}
	if out.Report.Documents == 0 {
		return out, fmt.Errorf("no documents in the input\n  %s", out.Report.Input)
	}
	return out, o.taught(r.finish(&out.Report))
}

// taught adds advice to an error from the file system.
func (o Options) taught(err error) error {
	full := errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
	switch {
	case full && o.Sample > 0:
		return fmt.Errorf("%w\n  make room, name another place in TMPDIR, or take a smaller sample", err)
	case full:
		return fmt.Errorf("%w\n  finished work is kept: make room, then give the same command again", err)
	}
	return err
}

// size returns the number of bytes on disk of a split in a pass.
func (r *runner) size(k, i int) int64 {
	if k == 0 {
		return r.origin.size(r.splits[i])
	}
	name := r.passes[k-1].docs(i)
	return r.state.maps[k-1][i].Files[name].Bytes
}

type runner struct {
	o       Options
	passes  []*pass
	origin  origin
	splits  []int // ordinals of the origin's splits: all, or a sample
	each    []int // documents to read of each split; 0 for all
	journal *journal
	state   state
	memory  Memory

	read atomic.Int64
	show sync.Mutex
}

// sample chooses splits evenly, at most one for each document of the sample.
func (r *runner) sample() {
	all, n := r.origin.count(), r.o.Sample
	few := all
	if n > 0 {
		few = min(n, all)
	}
	for i := range few {
		r.splits = append(r.splits, i*all/few)
		r.each = append(r.each, n*(i+1)/few-n*i/few)
	}
}

// all runs the passes and the comparisons between them.
func (r *runner) all(ctx context.Context) error {
	for k := range r.passes {
		if k > 0 {
			if err := r.wait(ctx, func() bool { return r.state.whole(k - 1) },
				func() string { return r.missing(k - 1) }); err != nil {
				return err
			}
			if err := r.compare(ctx, k); err != nil {
				return err
			}
		}
		if r.state.complete() {
			return nil
		}
		if err := r.pass(ctx, k); err != nil {
			return err
		}
		r.update()
	}
	return nil
}

// compare does the comparison before pass k, or waits for the task that does it.
func (r *runner) compare(ctx context.Context, k int) error {
	if r.o.TaskIndex == 0 && r.state.compared[k] == nil && !r.state.complete() {
		e, err := r.decide(ctx, k)
		if err == nil {
			err = r.journal.line(e)
		}
		if err == nil && r.o.committed != nil {
			err = r.o.committed(place{e.Step, 0})
		}
		if err != nil {
			return err
		}
		r.update()
	}
	return r.wait(ctx, func() bool { return r.state.compared[k] != nil },
		func() string { return "task 0, which compares the documents of all" })
}

// pass runs the remaining splits of this process in a pass, each worker one split at a time.
func (r *runner) pass(ctx context.Context, k int) error {
	var mine []int
	total := int64(0)
	for i := range r.splits {
		if r.o.TaskCount > 1 && i%r.o.TaskCount != r.o.TaskIndex || r.state.maps[k][i] != nil {
			continue
		}
		mine = append(mine, i)
		total += r.size(k, i)
	}
	what := "curating"
	if n := len(r.passes); n > 1 {
		what += fmt.Sprintf(", pass %d of %d", k+1, n)
	}
	r.read.Store(0)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(r.o.workers(), len(mine)) {
		group.Go(func() {
			w := newWorker(r, k)
			w.progress = func(bytes int64) { r.progress(what, bytes, total) }
			for ctx.Err() == nil {
				at := int(next.Add(1)) - 1
				if at >= len(mine) {
					return
				}
				e, err := w.split(ctx, mine[at])
				if err == nil {
					err = r.journal.line(e)
				}
				if err == nil && r.o.committed != nil {
					err = r.o.committed(place{e.Step, e.Split})
				}
				if err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

func (o Options) workers() int {
	if o.Workers > 0 {
		return o.Workers
	}
	return runtime.GOMAXPROCS(0)
}

// progress counts bytes that were read and reports them.
func (r *runner) progress(what string, bytes, total int64) {
	if bytes == 0 {
		return
	}
	read := r.read.Add(bytes)
	if r.o.Progress != nil {
		r.show.Lock()
		r.o.Progress(what, min(read, total), total)
		r.show.Unlock()
	}
}
