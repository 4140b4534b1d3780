package prepare

import (
	"context"
	"errors"
	"fmt"
	"os"

	"anneal/dataset"
	"anneal/internal/fileio"
	"anneal/tokenfile"
	"anneal/tokenizer"
)

// ExportReport says what was written and where.
type ExportReport struct {
	Format    string `json:"format"`
	Documents uint64 `json:"documents"`
	Tokens    uint64 `json:"tokens"`
	// tokens that are not to be trained on; the files do not record this
	Prompts uint64 `json:"prompt_tokens,omitempty"`
}

// ExportData writes a data set as token files of another system into the directory out. The directory must not exist
// or must be empty; it appears when it is complete.
func ExportData(ctx context.Context, dir, out string, format tokenfile.Format,
	progress func(done, total int64)) (ExportReport, error) {
	r := ExportReport{Format: format.Name}
	d, err := dataset.Open(dir)
	if err != nil {
		return r, err
	}
	defer d.Close()
	m := d.Manifest
	v := tokenfile.Vocabulary{Size: m.Tokenizer.VocabSize, EOT: m.Tokenizer.EOT, Name: m.Tokenizer.Path}
	err = fileio.Dir(out, func(tmp string) error {
		for _, split := range []struct {
			name string
			val  bool
			dataset.Counts
		}{{"train", false, m.Train.Counts}, {"val", true, m.Val.Counts}} {
			if split.Documents == 0 {
				continue
			}
			err := exportSplit(ctx, d, split.val,
				func() (tokenfile.Writer, error) { return format.Create(tmp, split.name, v) }, func(tokens int) {
					r.Documents++
					r.Tokens += uint64(tokens) + 1
					progress(int64(r.Tokens), int64(m.Train.Tokens+m.Val.Tokens))
				})
			if err != nil {
				return fmt.Errorf("export %s: %w", out, err)
			}
			r.Prompts += split.PromptTokens
		}
		return nil
	})
	return r, err
}

func exportSplit(ctx context.Context, d *dataset.Dataset, val bool, create func() (tokenfile.Writer, error),
	done func(tokens int)) error {
	w, err := create()
	if err != nil {
		return err
	}
	for doc, err := range d.Documents(val) {
		if err = errors.Join(err, context.Cause(ctx)); err == nil {
			err = w.Write(doc)
		}
		if err != nil {
			w.Close()
			return err
		}
		done(len(doc))
	}
	return w.Close()
}

// ImportOptions says which token files to import as a data set.
type ImportOptions struct {
	Format        tokenfile.Format
	Paths         []string // files in the order of the stream, or one directory with files named as in the format
	Dir           string   // of the data set
	Replace       bool
	Tokenizer     *tokenizer.Tokenizer // the tokenizer that produced the files
	TokenizerPath string
	// share of documents held out, if the directory has no files of a validation split
	ValFraction float64
	Progress    func(done, total int64) // tokens; the total is approximate
}

// ImportData creates a data set from token files. It returns how many documents of an index do not end with an
// end-of-text token.
func ImportData(ctx context.Context, o ImportOptions) (m dataset.Manifest, unended uint64, err error) {
	if _, err := o.Tokenizer.EndOfText(); err != nil {
		return m, 0, err
	}
	tok := DatasetTokenizer(o.Tokenizer, o.TokenizerPath)
	v := tokenfile.Vocabulary{Size: tok.Vocab, EOT: tok.EOT}
	paths, val := o.Paths, []string(nil)
	if info, err := os.Stat(paths[0]); err == nil && info.IsDir() && len(paths) == 1 {
		dir := paths[0]
		if paths, err = o.Format.Find(dir, "train"); err == nil {
			val, err = o.Format.Find(dir, "val")
		}
		if err != nil {
			return m, 0, err
		}
		if len(paths)+len(val) == 0 {
			return m, 0, fmt.Errorf("%s holds no files of format %s: %s\n  name the files themselves, in order",
				dir, o.Format.Name, o.Format.Help)
		}
	}
	total := int64(o.Format.About(append(paths[:len(paths):len(paths)], val...), v))
	opt := dataset.ImportOptions{
		BuildOptions: dataset.BuildOptions{
			Dir: o.Dir, Replace: o.Replace, Tokenizer: tok, TokenizerFile: o.Tokenizer,
			TokenizerConfig: o.Tokenizer.ConfigJSON(), ValFraction: o.ValFraction,
			Progress: func(train, val dataset.Counts) { o.Progress(int64(train.Tokens+val.Tokens), total) },
		},
		Decode: o.Tokenizer.Decode,
	}
	var held tokenfile.Reader
	if len(val) > 0 {
		held = o.Format.Read(val, v, &unended)
	}
	m, err = dataset.Import(ctx, opt, o.Format.Read(paths, v, &unended), held)
	return m, unended, err
}
