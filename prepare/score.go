package prepare

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"anneal/dataset"
	"anneal/dataset/score"
	"anneal/tokenizer"
)

// ScoreOptions says how to score the documents of a data set.
type ScoreOptions struct {
	Dir      string
	By       string // a metric of package score, length, loss, or file:PATH with lines in the format of score.ReadLines
	Loss     Scorer // for loss; nil otherwise
	Name     string // of the scores; "" means that of the metric or of the file
	Threads  int
	Progress func(done, total int64) // tokens; may be nil
}

// A Scorer gives a number to each document of the training split of the data set in dir, and says what it is.
type Scorer func(ctx context.Context, dir string,
	progress func(done, total int64)) (about string, values []float32, err error)

// Scorings returns the values of By with a description of each.
func Scorings() []score.Metric {
	return append(slices.Clone(score.Metrics), score.Metric{Name: "length", About: "tokens"},
		score.Metric{Name: "loss", About: "bits per byte under the model of a run"},
		score.Metric{Name: "file:PATH",
			About: "imported: one line per document, with a number, null or an object with a \"score\""})
}

// Check returns an error if the options are invalid, and fills in the name.
func (o *ScoreOptions) Check() error {
	path, isFile := strings.CutPrefix(o.By, "file:")
	known := slices.ContainsFunc(Scorings(), func(m score.Metric) bool { return m.Name == o.By })
	switch {
	case !isFile && !known:
		var names []string
		for _, m := range Scorings() {
			names = append(names, m.Name)
		}
		return fmt.Errorf("unknown scores %q\n  try one of %s", o.By, strings.Join(names, ", "))
	case o.By == "loss" && o.Loss == nil:
		return errors.New("scoring by loss needs a model\n" +
			"  pass a run with --model RUN; a small model trained on part of the data or on other data is enough")
	case o.By != "loss" && o.Loss != nil:
		return fmt.Errorf("scores by %s do not use a model\n  remove --model, or try --by loss", o.By)
	}
	if o.Name == "" {
		if o.Name = o.By; isFile {
			o.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
		}
	}
	if !dataset.ScoresName.MatchString(o.Name) {
		return fmt.Errorf("%q is not a valid name for scores: use at most 32 lower-case letters, digits, _ and -\n"+
			"  set the name with --name", o.Name)
	}
	return nil
}

// ScoreReport summarises the scores of a data set.
type ScoreReport struct {
	Name      string         `json:"name"`
	About     string         `json:"about"`
	Path      string         `json:"path"`
	Documents int            `json:"documents"`
	Unscored  int            `json:"unscored"` // documents without a score
	Bytes     uint64         `json:"text_bytes"`
	Quantiles [7]float64     `json:"quantiles"` // for the shares in ScoreQuantiles
	Bins      []ScoreBin     `json:"bins"`
	Low       []ScoreExample `json:"lowest"`
	High      []ScoreExample `json:"highest"`
}

// ScoreQuantiles are the shares of documents for the quantiles of a report.
var ScoreQuantiles = [7]float64{0, 0.01, 0.1, 0.5, 0.9, 0.99, 1}

// ScoreBin counts the documents with From ≤ score < To. The first and the last bin include those beyond.
type ScoreBin struct {
	From      float64 `json:"from"`
	To        float64 `json:"to"`
	Documents int     `json:"documents"`
}

// ScoreExample is a document at one end of the scores.
type ScoreExample struct {
	Document int     `json:"document"` // its number in the training split
	Score    float64 `json:"score"`
	Tokens   uint64  `json:"tokens"`
	Text     string  `json:"text"` // its beginning
}

// Score scores the documents of the training split and stores the scores beside the data set.
func Score(ctx context.Context, o ScoreOptions) (*ScoreReport, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	d, err := dataset.Open(o.Dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	tok, err := OpenTokenizer(d)
	if err != nil {
		return nil, err
	}
	if d.Manifest.Train.Documents == 0 {
		return nil, fmt.Errorf("%w in %s, and scores are those of its documents\n  rebuild it with --val 0.01",
			dataset.ErrNoTraining, d.Dir)
	}
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	s, err := o.scores(ctx, d, tok)
	if err != nil {
		return nil, err
	}
	if len(s.Values) > 0 && !slices.ContainsFunc(s.Values, func(v float32) bool { return v == v }) {
		return nil, fmt.Errorf("%s gives no document a score\n"+
			"  try another metric; compression and length score every text", o.By)
	}
	if err := d.WriteScores(s); err != nil {
		return nil, err
	}
	r := reportScores(s)
	r.Path, r.Bytes = d.ScoresPath(s.Name), d.Manifest.Train.TextBytes
	return r, r.examples(d, tok, s.Values)
}

func (o *ScoreOptions) scores(ctx context.Context, d *dataset.Dataset,
	tok *tokenizer.Tokenizer) (dataset.Scores, error) {
	s := dataset.Scores{Name: o.Name}
	var err error
	switch metric, ofText := score.Named(o.By); {
	case ofText:
		s.About = metric.About
		s.Values, err = o.scoreTexts(ctx, d, tok, metric)
	case o.By == "length":
		s.About = "tokens"
		for tokens, err := range d.Documents(false) {
			if err := errors.Join(err, ctx.Err()); err != nil {
				return s, err
			}
			s.Values = append(s.Values, float32(len(tokens)))
		}
	case o.By == "loss":
		s.About, s.Values, err = o.Loss(ctx, o.Dir, o.Progress)
	default:
		path := strings.TrimPrefix(o.By, "file:")
		s.About = "from " + filepath.Base(path)
		s.Values, err = readScores(path, d)
	}
	return s, err
}

// readScores reads scores from a file.
func readScores(path string, d *dataset.Dataset) ([]float32, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	values, err := score.ReadLines(f, d.Manifest.Train.Documents)
	if err != nil {
		err = fmt.Errorf("%s: %w\n  give one line per document of the training split of %s, in document order: a "+
			"number, null, or an object with a \"score\"", path, err, d.Dir)
	}
	return values, err
}

// scoreTexts scores the text of each document in parallel. The result does not depend on the number of threads.
func (o *ScoreOptions) scoreTexts(ctx context.Context, d *dataset.Dataset, tok *tokenizer.Tokenizer,
	m score.Metric) ([]float32, error) {
	type batch struct {
		first  int
		tokens []uint32
		ends   []int
	}
	const size = 1 << 16 // tokens per batch, unless a document is longer
	values := make([]float32, d.Manifest.Train.Documents)
	work := make(chan batch)
	var done atomic.Int64
	var group sync.WaitGroup
	for range cmp.Or(max(o.Threads, 0), runtime.GOMAXPROCS(0)) {
		group.Go(func() {
			scoreOf := m.New()
			var text []byte
			for b := range work {
				from := 0
				for i, end := range b.ends {
					text = tok.Decode(text[:0], b.tokens[from:end])
					values[b.first+i] = float32(scoreOf(text))
					from = end
				}
				o.Progress(done.Add(int64(len(b.tokens)+len(b.ends))), int64(d.Manifest.Train.Tokens))
			}
		})
	}
	var b batch
	var fault error
	for tokens, err := range d.Documents(false) {
		if fault = errors.Join(err, ctx.Err()); fault != nil {
			break
		}
		b.tokens = append(b.tokens, tokens...)
		b.ends = append(b.ends, len(b.tokens))
		if len(b.tokens) >= size {
			work <- b
			b = batch{first: b.first + len(b.ends)}
		}
	}
	if fault == nil {
		work <- b
	}
	close(work)
	group.Wait()
	return values, fault
}

// reportScores summarises scores.
func reportScores(s dataset.Scores) *ScoreReport {
	r := &ScoreReport{Name: s.Name, About: s.About, Documents: len(s.Values)}
	var sorted []float64
	for _, v := range s.Values {
		if v == v {
			sorted = append(sorted, float64(v))
		}
	}
	r.Unscored = len(s.Values) - len(sorted)
	if len(sorted) == 0 {
		return r
	}
	slices.Sort(sorted)
	for i, q := range ScoreQuantiles {
		r.Quantiles[i] = sorted[int(q*float64(len(sorted)-1)+0.5)]
	}
	low, high := r.Quantiles[1], r.Quantiles[5]
	bins := 16
	if low == high {
		bins = 1
	}
	r.Bins = make([]ScoreBin, bins)
	for i := range r.Bins {
		r.Bins[i].From = low + (high-low)*float64(i)/float64(bins)
		r.Bins[i].To = low + (high-low)*float64(i+1)/float64(bins)
	}
	for _, v := range sorted {
		at := 0
		if bins > 1 {
			at = int(math.Floor((v - low) / (high - low) * float64(bins)))
		}
		r.Bins[min(max(at, 0), bins-1)].Documents++
	}
	return r
}

const (
	scoreExamples = 3  // at each end
	exampleTokens = 60 // tokens of the beginning of a document
)

// examples adds the documents at both ends.
func (r *ScoreReport) examples(d *dataset.Dataset, tok *tokenizer.Tokenizer, values []float32) error {
	var scored []int
	for i, v := range values {
		if v == v {
			scored = append(scored, i)
		}
	}
	slices.SortStableFunc(scored, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	n := min(scoreExamples, len(scored))
	ends := slices.Concat(scored[:n], scored[len(scored)-n:])
	var wanted []uint64
	for _, doc := range ends {
		wanted = append(wanted, uint64(doc))
	}
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	heads, tokens, err := d.Heads(wanted, exampleTokens)
	if err != nil {
		return err
	}
	for i, doc := range ends {
		at, _ := slices.BinarySearch(wanted, uint64(doc))
		text := bytes.ToValidUTF8(tok.Decode(nil, heads[at]), []byte("\ufffd"))
		e := ScoreExample{Document: doc, Score: float64(values[doc]), Tokens: tokens[at], Text: string(text)}
		if i < n {
			r.Low = append(r.Low, e)
		} else {
			r.High = append(r.High, e)
		}
	}
	slices.Reverse(r.High)
	return nil
}
