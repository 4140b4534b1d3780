package curate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"anneal/corpus"

	"github.com/zeebo/xxh3"
)

// worker runs documents through the stages of a pass. It belongs to one goroutine.
type worker struct {
	r        *runner
	pass     *pass
	stages   []Stage
	compared *compared
	progress func(bytes int64)

	doc   Doc
	past  history
	line  []byte
	place []byte
	tally *Report // of the split at hand
	most  int     // largest number of documents to take from the split; 0 means no limit

	at          int              // the ordinal of the current split
	rejects     *corpus.LineFile // made with the first
	rejectFault error

	docs, signals, texts, clusters *corpus.LineFile // nil for outputs that are not written
	open                           map[string]*corpus.LineFile
}

// history records what happened to a document in a pass.
type history struct {
	bytes   int // bytes of its text before the pass
	verdict Verdict
	changed []change
}

// change is a stage's change to the length of a text.
type change struct {
	stage string
	cut   int
}

func newWorker(r *runner, pass int) *worker {
	w := &worker{r: r, pass: r.passes[pass]}
	w.stages = newStages(w.pass.stages)
	if pass > 0 {
		w.compared = w.stages[0].(*compared)
	}
	return w
}

// split processes a split. Its files appear only when all of them are complete.
func (w *worker) split(ctx context.Context, split int) (*entry, error) {
	e := &entry{record: record{Step: 2 * w.pass.number, Split: split,
		Input: w.r.input(&w.r.state, w.pass.number, split), Files: map[string]written{}}}
	e.Tally = newReport(w.pass.stages)
	w.tally, w.most, w.at, w.rejects, w.rejectFault = &e.Tally, 0, split, nil, nil
	if w.pass.number == 0 {
		w.most = w.r.each[split]
	}
	w.open = map[string]*corpus.LineFile{}
	defer func() {
		for _, f := range w.open {
			f.Abandon()
		}
	}()
	err := w.create(&w.docs, w.pass.docs(split), true)
	if err == nil {
		err = w.create(&w.signals, w.pass.beside("signals", split), w.pass.signals)
	}
	if err == nil {
		err = w.create(&w.texts, w.pass.beside("texts", split), w.pass.texts)
	}
	if err == nil {
		err = w.create(&w.clusters, w.pass.beside("clusters", split), w.compared != nil)
	}
	if err == nil && w.pass.number == 0 {
		err = w.r.origin.read(ctx, w, w.r.splits[split])
	} else if err == nil {
		err = w.reread(ctx, split)
	}
	if err != nil {
		return nil, err
	}
	for name, f := range w.open {
		size, sum, err := f.Commit()
		if err != nil {
			return nil, err
		}
		e.Files[name] = written{size, sum}
	}
	e.Kept = e.Tally.Kept
	return e, nil
}

func (w *worker) create(f **corpus.LineFile, name string, wanted bool) (err error) {
	if *f = nil; !wanted {
		return nil
	}
	path := filepath.Join(w.r.o.Dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	if *f, err = corpus.CreateLines(path); err == nil {
		w.open[name] = *f
	}
	return err
}

// full reports whether the current split has delivered its part of a sample.
func (w *worker) full() bool { return w.most > 0 && w.tally.Documents >= w.most }

// reread runs the documents that the previous pass kept through the stages.
func (w *worker) reread(ctx context.Context, split int) error {
	k := w.pass.number
	if err := w.compared.begin(w.r, k, split); err != nil {
		return err
	}
	in, err := openShard(w.r.o.Dir, w.r.passes[k-1].docs(split))
	if err != nil {
		return err
	}
	defer in.close()
	before := int64(0)
	for d, err := range in.documents() {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = w.document(d)
		}
		if err != nil {
			return err
		}
		now := in.read()
		w.progress(now - before)
		before = now
	}
	w.progress(in.read() - before)
	return nil
}

// document runs one document through the stages. A dropped document continues only if signals are kept and it is not a
// duplicate.
func (w *worker) document(in item) error {
	d, h := &w.doc, &w.past
	d.begin(in)
	d.SetText(valid(in.Text))
	*h = history{bytes: len(in.Text), changed: h.changed[:0]}
	for i, s := range w.stages {
		before, text := len(d.Text), d.Text
		v := s.Apply(d)
		if len(text) != len(d.Text) || len(text) > 0 && &text[0] != &d.Text[0] {
			h.changed = append(h.changed, change{w.pass.stages[i].name, before - len(d.Text)})
			if !h.verdict.Drop && !v.Drop {
				w.tally.change(i, before-len(d.Text))
			}
		}
		if v.Drop && !h.verdict.Drop {
			h.verdict = v
			w.tally.drop(i, d, in.Text, h.bytes, v)
		}
		if h.verdict.Drop && (w.signals == nil || i == 0 && w.compared != nil) {
			break
		}
	}
	return w.write()
}

// tooLong reports whether the line of a document is longer than readers take. Stages hardly make texts longer.
func (w *worker) tooLong(in item) bool {
	const escaped, rest = 6, 1 << 10 // the most bytes that one becomes; of the place, besides the name of the source
	if escaped*(len(in.Text)+len(in.Fields)+len(in.Moved)+len(in.Source))+rest <= corpus.LongestLine {
		return false
	}
	w.doc.begin(in)
	w.doc.SetText(valid(in.Text))
	w.line, w.place = appendDocument(w.line[:0], w.place[:0], &w.doc)
	defer func() { w.line = reusable(w.line) }()
	return len(w.line) > corpus.LongestLine+1
}

// begin makes d the next document, without its text.
func (d *Doc) begin(in item) {
	d.Key, d.Source, d.offset, d.Signals = in.Key, in.Source, in.Offset, d.Signals[:0]
	d.Fields, d.moved = valid(in.Fields), valid(in.Moved)
}

// write writes the lines about a document that has passed the stages to the files, and counts the document.
func (w *worker) write() error {
	d, h := &w.doc, &w.past
	w.tally.Documents++
	w.tally.Bytes += int64(h.bytes)
	if !h.verdict.Drop || w.texts != nil {
		w.line, w.place = appendDocument(w.line[:0], w.place[:0], d)
	}
	if !h.verdict.Drop {
		w.tally.Kept++
		w.tally.KeptBytes += int64(len(d.Text))
		if _, err := w.docs.Write(w.line); err != nil {
			return err
		}
	}
	if w.texts != nil {
		if _, err := w.texts.Write(w.line); err != nil {
			return err
		}
	}
	if w.signals != nil {
		w.line = appendSignals(w.line[:0], d, h)
		if _, err := w.signals.Write(w.line); err != nil {
			return err
		}
	}
	if w.clusters != nil && w.compared.now.Size > 1 {
		w.line = w.compared.appendCluster(w.line[:0], d)
		if _, err := w.clusters.Write(w.line); err != nil {
			return err
		}
	}
	w.line = reusable(w.line)
	return nil
}

// placeHash chooses the examples of a report: those with the smallest hashes.
func placeHash(rule string, k Key) uint64 {
	return xxh3.HashString(fmt.Sprintf("%s %d %d %d", rule, k.Source, k.Split, k.Row))
}
