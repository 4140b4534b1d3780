package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"anneal/corpus"
	"anneal/curate"
	"anneal/fasttext"
	"anneal/internal/fileio"
	"anneal/internal/units"
)

type dataClassifierCmd struct {
	Train    classifierTrainCmd    `cmd:"" help:"Train a document classifier."`
	Eval     classifierEvalCmd     `cmd:"" help:"Measure a classifier on labelled documents."`
	Predict  classifierPredictCmd  `cmd:"" help:"Classify documents."`
	Quantize classifierQuantizeCmd `cmd:"" help:"Make a classifier several times smaller."`
}

// exampleArgs name documents whose labels are known.
type exampleArgs struct {
	Label     []string `sep:"none" placeholder:"NAME=PATH" help:"Documents of one label: a file, a directory, or DIR/*.md for all .md files below DIR. May be repeated."`
	Lines     []string `arg:"" optional:"" name:"line-files" help:"Files with one example per line: __label__NAME and the text, as in fastText."`
	TextField string   `default:"text" help:"Field with the text: a key of .jsonl lines, a column of .parquet, where a.b is field b within a."`
}

func (a exampleArgs) examples(s *session) (curate.Examples, error) {
	x := curate.Examples{
		Lines: a.Lines, Read: corpus.Options{TextField: a.TextField}, Progress: s.readProgress(), Report: s.reportText,
	}
	for _, l := range a.Label {
		name, path, ok := strings.Cut(l, "=")
		if !ok || path == "" {
			return x, &usageError{"--label " + l + " has no path", "try --label good=DIR"}
		}
		if err := fasttext.CheckLabel(name); err != nil {
			return x, asUsage(err)
		}
		k := curate.Kind{Label: name, Paths: []string{path}}
		if ending, ok := strings.CutPrefix(filepath.Base(path), "*."); ok {
			k.Paths, k.Extensions = []string{filepath.Dir(path)}, []string{"." + ending}
		}
		x.Kinds = append(x.Kinds, k)
	}
	if len(x.Kinds)+len(x.Lines) == 0 {
		return x, &usageError{"no examples were given", "try --label good=DIR --label bad=DIR"}
	}
	return x, nil
}

type classifierTrainCmd struct {
	exampleArgs
	Out           outFile `required:"" placeholder:"FILE" example:"q.bin" help:"The model to write: a .bin, which fastText reads too; - is standard output."`
	Holdout       float64 `default:"0.1" help:"Share of the examples to hold out and measure on."`
	Dim           int     `default:"100" help:"Length of the vectors."`
	LR            float64 `name:"lr" default:"0.1" help:"Learning rate at the start; it falls to 0."`
	Epoch         int     `default:"5" help:"Passes over the examples."`
	Loss          string  `default:"softmax" enum:"softmax,hs,ova,ns" help:"softmax, hs (hierarchical softmax, for many labels), ova (one against all) or ns (negative sampling)."`
	WordNgrams    int     `default:"1" help:"Longest n-grams of words."`
	Minn          int     `default:"0" help:"Shortest n-grams of characters."`
	Maxn          int     `default:"0" help:"Longest n-grams of characters; 0 for none."`
	Bucket        int     `default:"2000000" help:"Hash buckets for n-grams. Each takes 4 bytes times --dim, in memory and in the file."`
	MinCount      int     `default:"1" help:"Drop words that occur less often."`
	MinCountLabel int     `default:"0" help:"Drop labels that occur less often."`
	Neg           int     `default:"5" help:"Negative samples per example, with --loss ns."`
	Seed          uint64  `default:"0" help:"Seed of the initial vectors, the order of examples and the samples."`
	lossFlags
	threadsFlag
}

func (classifierTrainCmd) Help() string {
	return `The options and their defaults are fastText's. The same examples and options give the same file, for any number of --threads.
For languages take --minn 2 --maxn 4 --dim 16 --loss hs; for quality --word-ngrams 2.

` + example("anneal data classifier train --label good=wiki.jsonl.zst --label bad=crawl/ --word-ngrams 2 --bucket "+
		"500000 --out q.bin",
		"anneal data classifier train lines.txt --minn 2 --maxn 4 --dim 16 --out lid.bin",
		"anneal data classifier train --label go=$(go env GOROOT)/src/*.go --label asm=$(go env GOROOT)/src/*.s --dim "+
			"16 --out kind.bin")
}

func (c classifierTrainCmd) Run(s *session) error {
	if !(c.Holdout >= 0 && c.Holdout <= 0.9) {
		return &usageError{fmt.Sprintf("--holdout %v is not a share from 0 to 0.9", c.Holdout), "try --holdout 0.1"}
	}
	x, err := c.examples(s)
	if err != nil {
		return err
	}
	x.Read.Out = c.Out.unread()
	loss, err := fasttext.ParseLoss(c.Loss)
	if err != nil {
		return asUsage(err)
	}
	o := fasttext.TrainOptions{
		Dim: c.Dim, LR: c.LR, Epoch: c.Epoch, Loss: loss, WordNgrams: c.WordNgrams, MinN: c.Minn, MaxN: c.Maxn,
		Bucket: c.Bucket, MinCount: c.MinCount, MinCountLabel: c.MinCountLabel, Neg: c.Neg, Seed: c.Seed,
		Threads: int(c.Threads), Available: availableMemory(),
	}
	if err := o.Check(); err != nil {
		return asUsage(err)
	}
	if err := o.Fits(); err != nil {
		return err
	}
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		dir, err := fileio.Beside(string(c.Out))
		if err != nil {
			return err
		}
		var read corpus.Report // on the documents of all labels
		x.Report = func(r corpus.Report) {
			s.reportText(r)
			read.Add(r)
		}
		m, rep, err := curate.TrainClassifier(ctx, x, dir, c.Holdout, o)
		if err != nil {
			return asData(err)
		}
		if err := m.Save(string(c.Out)); err != nil {
			return err
		}
		elapsed := time.Since(start)
		rate := float64(rep.Bytes) * float64(c.Epoch) / 1e6 / elapsed.Seconds()
		s.printf("learnt from %s examples, %s, %d times: %.1f MB/s\n",
			units.Commas(rep.Trained), units.FormatSize(rep.Bytes), c.Epoch, rate)
		if rep.Held.Examples > 0 {
			s.printEvaluation("held out", rep.Held)
		}
		s.closing(m.String(), c.Out.String(), elapsed,
			c.next(read, c.Out.next("anneal data classifier predict", "PATHS")))
		return s.finish(c.lossFlags, read, "", "give the same command again", map[string]any{
			"out": c.Out, "seconds": elapsed.Seconds(), "model": m.String(), "examples": rep.Trained,
			"bytes": rep.Bytes, "held_out": rep.Held, "mb_per_second": rate,
		})
	})
}

// printEvaluation prints the precision and recall of each label, and a dash for a share of nothing.
func (s *session) printEvaluation(what string, e fasttext.Evaluation) {
	s.printf("%-20s %10s %10s %10s\n", what, "examples", "precision", "recall")
	for _, l := range e.Labels {
		precision, recall := "–", "–"
		if l.Predicted > 0 {
			precision = fmt.Sprintf("%.4f", l.Precision)
		}
		if l.Examples > 0 {
			recall = fmt.Sprintf("%.4f", l.Recall)
		}
		s.printf("%-20s %10s %10s %10s\n", l.Label, units.Commas(l.Examples), precision, recall)
	}
	s.printf("%-20s %10s   accuracy %.4f\n", "all", units.Commas(e.Examples), e.Accuracy)
}

type classifierEvalCmd struct {
	Model string `arg:"" help:"A fastText model, .bin or .ftz."`
	exampleArgs
}

func (classifierEvalCmd) Help() string {
	return example("anneal data classifier eval q.bin --label good=new/good --label bad=new/bad",
		"anneal data classifier eval lid.ftz test.txt")
}

func (c classifierEvalCmd) Run(s *session) error {
	x, err := c.examples(s)
	if err != nil {
		return err
	}
	m, err := fasttext.Load(c.Model)
	if err != nil {
		return asData(err)
	}
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		e, err := curate.EvaluateClassifier(ctx, m, x)
		if err != nil {
			return asData(err)
		}
		s.printEvaluation(c.Model, e)
		s.closing("measured, nothing written", "",
			time.Since(start), command("anneal", "data", "classifier", "predict", c.Model)+" PATHS")
		return s.emit(map[string]any{"model": m.String(), "evaluation": e})
	})
}

type classifierPredictCmd struct {
	Model string `arg:"" help:"A fastText model, .bin or .ftz."`
	textArgs
	Top   count   `default:"1" help:"Labels to print per document."`
	Min   float64 `default:"0" help:"Print only labels with at least this probability."`
	Limit count   `default:"1000" help:"Documents to print. All are counted."`
}

func (classifierPredictCmd) Help() string {
	return example("anneal data classifier predict lid.ftz crawl/",
		"anneal data classifier predict q.bin --top 2 --limit 20 pages.jsonl.zst")
}

// predicted is a document with its labels.
type predicted struct {
	Source string                `json:"source"`
	Index  int                   `json:"index"` // of the document in its file
	Labels []fasttext.Prediction `json:"labels"`
}

func (c classifierPredictCmd) Run(s *session) error {
	if c.Top < 1 {
		return &usageError{"--top 0 is too small", "try --top 1"}
	}
	m, err := fasttext.Load(c.Model)
	if err != nil {
		return asData(err)
	}
	text := c.text(s, "predicting")
	r, err := corpus.Open(text.Paths, text.Options)
	if err != nil {
		return asData(err)
	}
	return s.untilSignal(func(ctx context.Context) error {
		p, bytes := m.NewPredictor(), 0
		var shown []predicted
		counts, total := map[string]int{}, 0
		began, spent := time.Now(), time.Duration(0)
		for d, err := range r.Documents() {
			if err != nil {
				return asData(err)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			start := time.Now()
			labels := p.Predict(d.Text, int(c.Top), float32(c.Min))
			spent += time.Since(start)
			bytes += len(d.Text)
			best := "(none)"
			if len(labels) > 0 {
				best = labels[0].Label
			}
			counts[best]++
			total++
			if len(shown) < int(c.Limit) {
				shown = append(shown, predicted{d.Source, d.Index, labels})
				s.printf("%s#%d", d.Source, d.Index)
				for _, l := range labels {
					s.printf("\t%s %.4f", l.Label, l.Score)
				}
				s.printf("\n")
			}
			text.Progress(r.BytesRead(), r.Size())
		}
		s.reportText(r.Report())
		rate := float64(bytes) / 1e6 / spent.Seconds()
		for _, name := range append(m.Labels(), "(none)") {
			if n := counts[name]; n > 0 {
				s.printf("%-20s %s documents\n", name, units.Commas(n))
			}
		}
		s.printf("%.1f MB/s for the model alone\n", rate)
		s.closing(units.Count(total, "document")+" classified, nothing written", "", time.Since(began), "")
		return s.emit(map[string]any{"documents": shown, "counts": counts, "corpus": r.Report(), "mb_per_second": rate})
	})
}

type classifierQuantizeCmd struct {
	Model  string  `arg:"" help:"A fastText model, .bin."`
	Out    outFile `required:"" placeholder:"FILE" example:"q.ftz" help:"The smaller model to write: a .ftz, which fastText reads too; - is standard output."`
	Cutoff int     `default:"0" help:"Number of words and n-grams to keep: those with the longest vectors. 0: all."`
	Dsub   int     `default:"2" help:"Vector components per code of one byte."`
	Qnorm  bool    `default:"true" negatable:"" help:"Store the length of each vector separately, in one more byte."`
	threadsFlag
}

func (classifierQuantizeCmd) Help() string {
	return example("anneal data classifier quantize q.bin --cutoff 100000 --out q.ftz")
}

func (c classifierQuantizeCmd) Run(s *session) error {
	m, err := fasttext.Load(c.Model)
	if err != nil {
		return asData(err)
	}
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		q, err := m.Quantize(ctx, fasttext.QuantizeOptions{
			Cutoff: c.Cutoff, Width: c.Dsub, Norms: c.Qnorm, Threads: int(c.Threads),
		})
		if err != nil {
			return asData(err)
		}
		before, err := os.Stat(c.Model)
		if err != nil {
			return err
		}
		var after int64
		err = fileio.Write(string(c.Out), func(w io.Writer) error {
			counted := counter{w: w}
			err := q.Write(&counted)
			after = counted.n
			return err
		})
		if err != nil {
			return err
		}
		s.printf("%s became %s; `anneal data classifier eval` measures the loss of accuracy\n",
			units.FormatSize(before.Size()), units.FormatSize(after))
		elapsed := time.Since(start)
		s.closing(q.String(), c.Out.String(), elapsed, c.Out.next("anneal data classifier eval", "--label NAME=PATH"))
		return s.emit(map[string]any{
			"out": c.Out, "seconds": elapsed.Seconds(), "model": q.String(), "bytes_before": before.Size(),
			"bytes": after,
		})
	})
}
