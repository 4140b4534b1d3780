package curate

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"anneal/corpus"
	"anneal/fasttext"

	"github.com/zeebo/xxh3"
)

// Examples are the inputs that a classifier learns from or is measured on: documents that share a label, and lines
// that contain their labels.
type Examples struct {
	Kinds []Kind
	Lines []string // files in fastText's format, with lines such as: __label__good and the text
	Read  corpus.Options

	Progress func(what string, done, total int64) // bytes on disk; may be nil
	Report   func(corpus.Report)                  // receives the report on each kind once it is read; may be nil
}

// Kind holds documents with the same label.
type Kind struct {
	Label      string
	Paths      []string
	Extensions []string // of the files to take from directories; empty means all
}

// all delivers the examples as lines of fastText's format. A line is valid until the next.
func (x *Examples) all(ctx context.Context) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, k := range x.Kinds {
			if !x.documents(ctx, k, yield) {
				return
			}
		}
		for _, path := range x.Lines {
			f, err := os.Open(path)
			if err != nil {
				yield(nil, err)
				return
			}
			more := x.lines(ctx, f, "reading "+path, yield)
			f.Close()
			if !more {
				return
			}
		}
	}
}

func (x *Examples) documents(ctx context.Context, k Kind, yield func([]byte, error) bool) (more bool) {
	o := x.Read
	o.Extensions = k.Extensions
	r, err := corpus.Open(k.Paths, o)
	if err == nil {
		err = fasttext.CheckLabel(k.Label)
	}
	if err != nil {
		return yield(nil, err) && false
	}
	var line []byte
	for d, err := range r.Documents() {
		line = fasttext.AppendLine(line[:0], k.Label, d.Text)
		if err = errors.Join(err, ctx.Err()); !yield(line, err) || err != nil {
			return false
		}
		x.show("reading "+k.Label, r.BytesRead(), r.Size())
	}
	if x.Report != nil {
		x.Report(r.Report())
	}
	return true
}

const byteOrderMark = "\ufeff"

// lines delivers the lines of a file that have a label, each cut to at most 1 MiB as in training.
func (x *Examples) lines(ctx context.Context, f *os.File, what string, yield func([]byte, error) bool) (more bool) {
	info, err := f.Stat()
	if err != nil {
		return yield(nil, err) && false
	}
	r := bufio.NewReaderSize(f, 1<<20)
	at, whole := int64(0), true
	if head, _ := r.Peek(len(byteOrderMark)); string(head) == byteOrderMark { // it hides the first label
		r.Discard(len(head))
		at = int64(len(head))
	}
	for {
		line, err := r.ReadSlice('\n')
		at += int64(len(line))
		end := err == nil
		if errors.Is(err, bufio.ErrBufferFull) {
			err = nil
		}
		if errors.Is(err, io.EOF) {
			end, err = true, nil
			if len(line) == 0 {
				return true
			}
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return yield(nil, err) && false
		}
		if whole && len(fasttext.LineLabels(line)) > 0 && !yield(append(bytes.TrimRight(line, "\n"), '\n'), nil) {
			return false
		}
		whole = end
		x.show(what, at, info.Size())
	}
}

func (x *Examples) show(what string, done, total int64) {
	if x.Progress != nil {
		x.Progress(what, done, total)
	}
}

// ClassifierReport describes the training examples of a classifier and its accuracy on held-out ones.
type ClassifierReport struct {
	Trained int                 `json:"trained"` // examples
	Bytes   int64               `json:"bytes"`   // of them
	Held    fasttext.Evaluation `json:"held_out"`
}

// TrainClassifier learns to tell kinds of documents apart and returns how well it does so on the share holdout of the
// examples, chosen by the hash of their words: copies of a text are all on one side, whatever their labels. Examples
// wait in a file in dir, as large as they are.
func TrainClassifier(ctx context.Context, x Examples, dir string, holdout float64,
	o fasttext.TrainOptions) (*fasttext.Model, ClassifierReport, error) {
	var rep ClassifierReport
	train, err := newSpool(dir)
	if err != nil {
		return nil, rep, err
	}
	defer train.remove()
	held, err := newSpool(dir)
	if err != nil {
		return nil, rep, err
	}
	defer held.remove()
	var words []byte
	for line, err := range x.all(ctx) {
		if err != nil {
			return nil, rep, err
		}
		to := train
		words = fasttext.AppendWords(words[:0], line)
		if float64(xxh3.Hash(words)>>11)/(1<<53) < holdout {
			to = held
		} else {
			rep.Trained++
		}
		if err := to.write(line); err != nil {
			return nil, rep, err
		}
	}
	if err := errors.Join(train.w.Flush(), held.w.Flush()); err != nil {
		return nil, rep, err
	}
	rep.Bytes = train.size
	o.Progress = func(done, total int64) { x.show("training", done, total) }
	m, err := fasttext.Train(ctx, train.f, train.size, o)
	if err != nil {
		return nil, rep, err
	}
	if _, err := held.f.Seek(0, io.SeekStart); err != nil {
		return nil, rep, err
	}
	rep.Held, err = measure(m, func(yield func([]byte, error) bool) { x.lines(ctx, held.f, "measuring", yield) })
	return m, rep, err
}

// EvaluateClassifier measures a model on examples.
func EvaluateClassifier(ctx context.Context, m *fasttext.Model, x Examples) (fasttext.Evaluation, error) {
	e, err := measure(m, x.all(ctx))
	if err == nil && e.Examples == 0 {
		err = fmt.Errorf("no examples to measure on\n  try --label NAME=PATH, or lines with labels")
	}
	return e, err
}

func measure(m *fasttext.Model, lines iter.Seq2[[]byte, error]) (e fasttext.Evaluation, err error) {
	p := m.NewPredictor()
	for line, err := range lines {
		if err != nil {
			return e, err
		}
		best := ""
		if r := p.Predict(line, 1, 0); len(r) > 0 {
			best = r[0].Label
		}
		e.Add(fasttext.LineLabels(line), best)
	}
	slices.SortStableFunc(e.Labels, func(a, b fasttext.LabelResult) int { return cmp.Compare(b.Examples, a.Examples) })
	return e, nil
}

// spool is a temporary file.
type spool struct {
	f    *os.File
	w    *bufio.Writer
	size int64
}

func newSpool(dir string) (*spool, error) {
	f, err := os.CreateTemp(dir, ".examples-*")
	if err != nil {
		return nil, err
	}
	_ = os.Remove(f.Name()) // if the system allows removing it now, not even a kill leaves the file behind
	return &spool{f: f, w: bufio.NewWriterSize(f, 1<<16)}, nil
}

func (s *spool) write(line []byte) error {
	n, err := s.w.Write(line)
	s.size += int64(n)
	return err
}

func (s *spool) remove() {
	s.f.Close()
	os.Remove(s.f.Name())
}
