package main

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"anneal/internal/units"
	"anneal/prepare"
	"anneal/use"
)

type dataScoreCmd struct {
	Dir   string `arg:"" help:"Directory of the data set."`
	By    string `required:"" placeholder:"METRIC" help:"compression, mtld, flesch, length, loss, or file:PATH."`
	Model string `placeholder:"RUN" help:"For loss: a run trained with the data's tokenizer."`
	Name  string `placeholder:"NAME" help:"Name of the scores for data.order. Default: the name of the metric or file."`
	threadsFlag
}

func (dataScoreCmd) Help() string {
	var b strings.Builder
	b.WriteString(example("anneal data score data/go --by compression",
		"anneal data score data/go --by loss --model runs/small", "anneal data score data/go --by file:quality.jsonl"))
	b.WriteString("\n\nWrites one number per document of the training split to DIR/scores/NAME.f32; " +
		"data.order orders samples by it:\n")
	for _, m := range prepare.Scorings() {
		b.WriteString(fmt.Sprintf("\n    %-12s %s", m.Name, m.About))
	}
	return b.String()
}

func (c dataScoreCmd) Run(s *session) error {
	o := prepare.ScoreOptions{
		Dir: c.Dir, By: c.By, Name: c.Name, Threads: int(c.Threads), Progress: s.status.tokensProgress("scoring"),
	}
	if c.Model != "" {
		o.Loss = use.ScoreByLoss(c.Model, int(c.Threads))
	}
	if err := o.Check(); err != nil {
		return asUsage(err)
	}
	return s.untilSignal(func(ctx context.Context) error {
		start := time.Now()
		r, err := prepare.Score(ctx, o)
		if err != nil {
			return asData(err)
		}
		s.printf("%s: %s\n", r.Name, r.About)
		s.printScores(r)
		elapsed := time.Since(start)
		rate := float64(r.Bytes) / 1e6 / elapsed.Seconds()
		s.printf("%.1f MB/s; `anneal explain data.order` explains how to use scores\n", rate)
		next := command(append(trainExample(), "data.path="+c.Dir, "data.order=first "+r.Name+" over 15%",
			"--out", "runs/"+nameOf(c.Dir))...)
		what := "scores of " + units.Commas(r.Documents) + " documents"
		if r.Unscored > 0 {
			what += ", " + units.Commas(r.Unscored) + " of them without one"
		}
		s.closing(what, r.Path, elapsed, next)
		return s.emit(struct {
			*prepare.ScoreReport
			Out     string  `json:"out"`
			Seconds float64 `json:"seconds"`
			Rate    float64 `json:"mb_per_second"`
		}{r, r.Path, elapsed.Seconds(), rate})
	})
}

// printScores draws a histogram of scores, and shows the documents with the lowest and highest scores.
func (s *session) printScores(r *prepare.ScoreReport) {
	if len(r.Bins) == 0 {
		return
	}
	q := r.Quantiles
	s.printf("lowest %.4g, 1%% below %.4g, 10%% below %.4g, median %.4g, 90%% below %.4g, 99%% below %.4g, "+
		"highest %.4g\n", q[0], q[1], q[2], q[3], q[4], q[5], q[6])
	most := 1
	for _, b := range r.Bins {
		most = max(most, b.Documents)
	}
	width := max(s.columns()-40, 10)
	for _, b := range r.Bins {
		s.printf("  %10.4g to %-10.4g %11s  %s\n",
			b.From, b.To, units.Commas(b.Documents), strings.Repeat("█", b.Documents*width/most))
	}
	for _, end := range []struct {
		name string
		list []prepare.ScoreExample
	}{{"lowest", r.Low}, {"highest", r.High}} {
		s.printf("%s:\n", end.name)
		for _, e := range end.list {
			text := []rune(strings.Map(func(r rune) rune {
				if !unicode.IsPrint(r) {
					return '·'
				}
				return r
			}, strings.Join(strings.Fields(e.Text), " ")))
			if most := max(s.columns()-34, 20); len(text) > most {
				text = append(text[:most-1], '…')
			}
			s.printf("  %10.4g  %9s tokens  %s\n", e.Score, units.Commas(e.Tokens), string(text))
		}
	}
}
