package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"anneal/config"
	"anneal/corpus"
	"anneal/dataset"
	"anneal/internal/fileio"
	"anneal/internal/units"
	"anneal/plan"
	"anneal/prepare"
	"anneal/run"
	"anneal/tokenizer"
	"anneal/train"
)

// InitOptions gives the text and the time to write a config for.
type InitOptions struct {
	Dir     string       // receives config.yaml, and data if the text is not a data set yet
	Text    prepare.Text // files and directories of text, or one data set; none: the Go standard library
	Vocab   int          // of a learned tokenizer; 0 means derived from the size of the text
	Time    time.Duration
	Threads int

	OnStage func(string)                         // says what begins
	OnText  func(what string, read, total int64) // progress of reading
	OnRead  func(corpus.Report)                  // receives the report on reading o.Text
	Warn    func(string)                         // receives warnings for the user
}

// InitResult describes the files written, and their contents.
type InitResult struct {
	Config string // path
	Data   string // directory of the data set
	*plan.Budgeted
}

// Init writes a config for this machine and a text, in which every value derived from the time has its rule as a
// comment. Text that is not a data set is tokenised with a vocabulary learned from it. A data set that an earlier call
// left in o.Dir is used as it is.
func Init(ctx context.Context, o InitOptions) (r *InitResult, err error) {
	r = &InitResult{Config: filepath.Join(o.Dir, "config.yaml")}
	if _, err := os.Stat(r.Config); err == nil {
		return nil, fmt.Errorf("%s: %w\n  train with it, edit it, or choose another directory", r.Config, fs.ErrExist)
	}
	_, missing := os.Stat(o.Dir)
	if err := os.MkdirAll(o.Dir, 0o777); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil && errors.Is(missing, fs.ErrNotExist) {
			os.Remove(o.Dir) // if it is empty
		}
	}()
	if r.Data, err = o.data(ctx); err != nil {
		return nil, err
	}
	cfg, err := config.Sources{
		Overrides: []string{"data.path=" + r.Data, fmt.Sprintf("threads=%d", o.Threads)},
		Complete:  func(cfg *config.Config) (err error) { r.Budgeted, err = o.size(ctx, cfg); return err },
	}.Load()
	if err != nil {
		return nil, err
	}
	return r, fileio.Write(r.Config, func(w io.Writer) error {
		_, err := w.Write(o.text(cfg, r))
		return err
	})
}

// RunFor returns a directory for the run with the config in dir. It is not dir itself, which training would refuse
// because it holds other files.
func RunFor(dir string) string {
	out := filepath.Join("runs", run.Name(dir))
	whole, err := filepath.Abs(out)
	if from, also := filepath.Abs(dir); errors.Join(err, also) == nil && from == whole {
		return out + "-run"
	}
	return out
}

// size derives the values that the time decides.
func (o InitOptions) size(ctx context.Context, cfg *config.Config) (*plan.Budgeted, error) {
	dev, err := train.OpenDevice(cfg, "", 0)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	b, err := NewBudget(ctx, o.Time, cfg, dev, 0)
	if err != nil {
		return nil, err
	}
	o.OnStage("measuring how fast models of several sizes train")
	return b.Derive(cfg)
}

// data returns the directory of the data set: the text itself if it is one, or the data set made from it.
func (o InitOptions) data(ctx context.Context) (string, error) {
	if len(o.Text.Paths) == 1 && dataset.Exists(o.Text.Paths[0]) {
		return o.Text.Paths[0], nil
	}
	dir := filepath.Join(o.Dir, "data")
	if dataset.Exists(dir) {
		o.OnStage("data: " + dir + " exists and is used as it is")
		return dir, nil
	}
	if len(o.Text.Paths) == 0 {
		_, err := prepare.SampleData(ctx, prepare.SampleOptions{
			Dir: dir, Vocab: o.Vocab, Threads: o.Threads, OnStage: o.OnStage, OnText: o.OnText,
		})
		return dir, err
	}
	text := func(what string) prepare.Text {
		t := o.Text
		t.Progress = func(read, total int64) { o.OnText(what, read, total) }
		return t
	}
	vocab := o.Vocab
	if vocab == 0 {
		reader, err := corpus.Open(o.Text.Paths, o.Text.Options)
		if err != nil {
			return "", err
		}
		vocab = vocabFor(reader.Size())
	}
	tok, report, err := prepare.TrainTokenizer(ctx, text("tokenizer"),
		tokenizer.TrainOptions{VocabSize: vocab, Threads: o.Threads})
	if err != nil {
		return "", err
	}
	o.OnStage(fmt.Sprintf("tokenizer: %s tokens learnt from %s in %s",
		units.Commas(tok.VocabSize()), units.FormatSize(report.Bytes), units.Count(report.Files, "file")))
	read := report.Bytes
	m, report, err := prepare.BuildData(ctx, text("data"), prepare.DataOptions{
		Dir: dir, Tokenizer: tok, TokenizerPath: filepath.Join(dir, "tokenizer.json"),
		ValFraction: heldOutOf(read), Threads: o.Threads,
	})
	if err == nil {
		o.OnRead(report)
		if remark := prepare.RemarkHeldOut(m); remark != "" {
			o.Warn(remark)
		}
	}
	return dir, err
}

// heldOutOf returns the share of the documents that is held out of so many bytes of text: a fiftieth, or of little text
// as much as has about 20,000 tokens, up to a tenth.
func heldOutOf(bytes int64) float64 { return min(max(0.02, 60e3/float64(max(bytes, 1))), 0.1) }

// vocabFor returns the vocabulary size for an amount of text. Small models of little text get a small table, which
// takes less of their size.
func vocabFor(bytes int64) int {
	switch {
	case bytes < 100e6:
		return 4096
	case bytes < 1e9:
		return 8192
	}
	return 32768
}

// text returns the config with its comments.
func (o InitOptions) text(cfg *config.Config, r *InitResult) []byte {
	data := r.Data
	if whole, err := filepath.Abs(data); err == nil {
		data = whole
		if base, err := filepath.Abs(o.Dir); err == nil {
			if rel, err := filepath.Rel(base, whole); err == nil && !strings.HasPrefix(rel, "..") {
				data = rel // the directory can be moved as a whole
			}
		}
	}
	lines := []config.Line{{Key: "data.path", Value: data, Comment: "The data set: `anneal data inspect` shows it."}}
	for _, d := range r.Derived {
		comment := d.Rule + " (" + d.Source + ")"
		if d.Key == "train.minutes" { // train --budget moves the end of a run; a config does not
			comment = "limit of the time: the budget, or a little more"
		}
		lines = append(lines, config.Line{Key: d.Key, Value: d.Value, Comment: comment})
	}
	keys := []string{"seed", "precision", "checkpoint.every", "log.sinks"}
	if o.Threads != 0 {
		keys = append([]string{"threads"}, keys...)
	}
	for _, key := range keys {
		k, err := config.Explain(key)
		value, also := cfg.Value(key)
		if errors.Join(err, also) == nil && !r.Derives(key) {
			first, _, _ := strings.Cut(k.Doc, ". ")
			first, _, _ = strings.Cut(first, "\n")
			lines = append(lines, config.Line{Key: key, Value: value, Comment: strings.TrimSuffix(first, ".")})
		}
	}
	p := r.Predicted
	head := fmt.Sprintf("# A run of about %v on this machine. Predicted: %s, %.0f MiB "+
		"of memory.\n#\n#   anneal train %s --out %s\n#\n"+
		"# Each value has its rule. `anneal explain KEY` says more, `anneal explain` lists all keys, and\n"+
		"# `anneal train %s --dry-run` shows the values of those that are not here.\n\n",
		time.Duration(p.Seconds*float64(time.Second)).Round(time.Second), p.Quality(),
		float64(p.MemoryBytes)/(1<<20), r.Config, RunFor(o.Dir), r.Config)
	return append([]byte(head), config.Commented(lines)...)
}
