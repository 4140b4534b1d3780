package prepare

import (
	"context"
	"fmt"
	"path/filepath"

	"anneal/corpus"
	"anneal/dataset"
	"anneal/internal/units"
	"anneal/tokenizer"
)

// SampleOptions says where to build a data set from the source of the Go standard library, and the size of its
// vocabulary.
type SampleOptions struct {
	Dir     string // of the data set
	Replace bool   // replace an existing data set in Dir
	Vocab   int    // tokens; 0 means 4,096
	Threads int

	OnStage func(string)                         // called with the name of each stage
	OnText  func(what string, read, total int64) // progress of reading
}

const (
	sampleVocab = 4096
	sampleVal   = 0.02 // share of the files that is held out
)

// SampleData learns a vocabulary from the source of the Go standard library, which every machine with Go has, and
// tokenises the source into a data set with held-out files.
func SampleData(ctx context.Context, o SampleOptions) (dataset.Manifest, error) {
	if !o.Replace && dataset.Exists(o.Dir) {
		return dataset.Manifest{}, fmt.Errorf("%s %w\n  use it as it is, replace it with --replace, "+
			"or choose another --out", o.Dir, dataset.ErrExists)
	}
	source, err := GoSource()
	if err != nil {
		return dataset.Manifest{}, err
	}
	dirs, err := standardLibrary(source)
	if err != nil {
		return dataset.Manifest{}, err
	}
	text := func(what string) Text {
		return Text{
			Paths: dirs, Options: corpus.Options{Extensions: []string{".go"}},
			Progress: func(read, total int64) { o.OnText(what, read, total) },
		}
	}
	o.OnStage("text: the Go standard library, " + source)
	vocab := o.Vocab
	if vocab == 0 {
		vocab = sampleVocab
	}
	tok, report, err := TrainTokenizer(ctx, text("tokenizer"),
		tokenizer.TrainOptions{VocabSize: vocab, Threads: o.Threads})
	if err != nil {
		return dataset.Manifest{}, err
	}
	o.OnStage(fmt.Sprintf("tokenizer: %s tokens learnt from %s in %s",
		units.Commas(tok.VocabSize()), units.FormatSize(report.Bytes), units.Count(report.Files, "file")))
	m, _, err := BuildData(ctx, text("data"), DataOptions{
		Dir: o.Dir, Replace: o.Replace, Tokenizer: tok, TokenizerPath: filepath.Join(o.Dir, "tokenizer.json"),
		ValFraction: sampleVal, Threads: o.Threads,
	})
	return m, err
}
