package curate

import (
	"context"
	"errors"
	"fmt"

	"anneal/corpus"

	"github.com/zeebo/xxh3"
)

// worker takes documents through the stages. It is one goroutine's.
type worker struct {
	r      *runner
	total  int64
	stages []Stage
	doc    Doc
	line   []byte
}

func newWorker(r *runner, total int64) *worker {
	return &worker{r: r, total: total, stages: r.o.Pipeline.NewStages()}
}

// split does a split: its first documents only, if each is not 0. Nothing of it is to be seen before all of it is there.
func (w *worker) split(ctx context.Context, index, each int) (*entry, error) {
	s := w.r.splits[index]
	e := &entry{Split: index, Tally: newReport(w.r.o.Pipeline)}
	var docs, signals *shard
	if each == 0 {
		e.Input, e.Files = s.Identity(), map[string]int64{}
		var err error
		if docs, err = newShard(w.r.o.Dir, fmt.Sprintf("docs/%05d.jsonl.zst", index)); err != nil {
			return nil, err
		}
		defer docs.abandon()
		if w.r.o.Pipeline.Signals {
			if signals, err = newShard(w.r.o.Dir, fmt.Sprintf("signals/%05d.jsonl.zst", index)); err != nil {
				return nil, err
			}
			defer signals.abandon()
		}
	}
	in := s.Open(nil)
	before := int64(0)
	for d, err := range in.Documents() {
		if err = errors.Join(ctx.Err(), err); err != nil {
			return nil, err
		}
		if err := w.document(Key{Source: d.File, Split: s.Part, Row: d.Index}, d, &e.Tally, docs, signals); err != nil {
			return nil, err
		}
		before = w.progress(in.BytesRead(), before)
		if each > 0 && e.Tally.Documents >= each {
			break
		}
	}
	w.progress(in.BytesRead(), before)
	e.Tally.read(in.Report())
	for _, out := range []*shard{docs, signals} {
		if out != nil {
			size, err := out.commit()
			if err != nil {
				return nil, err
			}
			e.Files[out.name] = size
		}
	}
	return e, nil
}

func (w *worker) progress(now, before int64) int64 {
	read := w.r.read.Add(now - before)
	if w.r.o.Progress != nil && (now != before) {
		w.r.show.Lock()
		w.r.o.Progress(min(read, w.total), w.total)
		w.r.show.Unlock()
	}
	return now
}

// document takes one through the stages. A dropped one goes on only where its signals are kept; the first stage that drops
// it counts.
func (w *worker) document(key Key, in corpus.Document, tally *Report, docs, signals *shard) error {
	d := &w.doc
	d.Key, d.Source, d.Signals = key, in.Source, d.Signals[:0]
	d.SetText(in.Text)
	verdict := Verdict{}
	for i, f := range w.stages {
		before, text := len(d.Text), d.Text
		v := f.Apply(d)
		if !verdict.Drop {
			if v.Drop {
				verdict = v
				tally.drop(i, key, in, v)
			} else if len(text) != len(d.Text) || len(text) > 0 && &text[0] != &d.Text[0] {
				tally.Stages[i].Changed++
				tally.Stages[i].BytesCut += int64(before - len(d.Text))
			}
		}
		if verdict.Drop && !w.r.o.Pipeline.Signals {
			break
		}
	}
	tally.Documents++
	tally.Bytes += int64(len(in.Text))
	if !verdict.Drop {
		tally.Kept++
		tally.KeptBytes += int64(len(d.Text))
		if docs != nil {
			w.line = appendDocument(w.line[:0], d)
			if err := docs.write(w.line); err != nil {
				return err
			}
		}
	}
	if signals != nil {
		w.line = appendSignals(w.line[:0], d, verdict, len(in.Text))
		return signals.write(w.line)
	}
	return nil
}

// placeHash chooses the examples of a report: those with the smallest.
func placeHash(rule string, k Key) uint64 {
	return xxh3.HashString(fmt.Sprintf("%s %d %d %d", rule, k.Source, k.Split, k.Row))
}
