package prepare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"anneal/corpus"
	"anneal/dataset"
	"anneal/tokenizer"
)

// Text names the source of the text of a tokenizer or a data set.
type Text struct {
	Paths    []string // files and directories
	Options  corpus.Options
	Progress func(read, total int64) // bytes on disk, after each document; may be nil
}

// Open returns the documents as plain bytes until ctx ends, and the reader, which holds the counts.
func (t Text) Open(ctx context.Context) (*corpus.Reader, iter.Seq2[[]byte, error], error) {
	r, docs, err := t.documents(ctx)
	if err != nil {
		return nil, nil, err
	}
	return r, func(yield func([]byte, error) bool) {
		for d, err := range docs {
			if !yield(d.Text, err) {
				return
			}
		}
	}, nil
}

// documents is like Open, but also returns where each document comes from.
func (t Text) documents(ctx context.Context) (*corpus.Reader, iter.Seq2[corpus.Document, error], error) {
	r, err := corpus.Open(t.Paths, t.Options)
	if err != nil {
		return nil, nil, err
	}
	return r, func(yield func(corpus.Document, error) bool) {
		for d, err := range r.Documents() {
			if !yield(d, errors.Join(ctx.Err(), err)) {
				return
			}
			if t.Progress != nil {
				t.Progress(r.BytesRead(), r.Size())
			}
		}
	}, nil
}

// each calls see for each document.
func (t Text) each(ctx context.Context, see func(corpus.Document)) (corpus.Report, error) {
	r, docs, err := t.documents(ctx)
	if err != nil {
		return corpus.Report{}, err
	}
	for d, err := range docs {
		if err != nil {
			return r.Report(), err
		}
		see(d)
	}
	return r.Report(), nil
}

// TrainTokenizer learns a vocabulary from text. The report counts what was read and what was left out.
func TrainTokenizer(ctx context.Context, text Text,
	o tokenizer.TrainOptions) (*tokenizer.Tokenizer, corpus.Report, error) {
	r, docs, err := text.Open(ctx)
	if err != nil {
		return nil, corpus.Report{}, err
	}
	tok, err := tokenizer.Train(ctx, o, docs)
	return tok, r.Report(), err
}

// DataOptions says how to build a data set for training.
type DataOptions struct {
	Dir           string
	Replace       bool                 // replace an existing data set in Dir
	Tokenizer     *tokenizer.Tokenizer // defines the token that ends a text
	TokenizerPath string               // the file it was read from, for messages
	PromptEnd     string               // ends a prompt, which is read but not trained on; "" for none
	Special       bool                 // names of special tokens are these tokens, and end-of-text ends a document
	ValFraction   float64
	Threads       int
	Warn          func(string) // receives a warning of names of special tokens in text; may be nil
}

// splitAt ends documents wherever end occurs in them. White space alone is no document.
func splitAt(docs iter.Seq2[[]byte, error], end []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for d, err := range docs {
			if err != nil {
				yield(nil, err)
				return
			}
			for part := range bytes.SplitSeq(d, end) {
				if len(bytes.TrimSpace(part)) > 0 && !yield(part, nil) {
					return
				}
			}
		}
	}
}

// watch warns if one of the first documents spells a special token.
func (o *DataOptions) watch(docs iter.Seq2[[]byte, error]) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		left := 16 << 20 // bytes to look at
		for d, err := range docs {
			if left > 0 {
				name := o.Tokenizer.FindSpecial(d[:min(len(d), left)])
				left -= len(d)
				if name != "" {
					o.Warn(fmt.Sprintf("the text spells the special token %s, which is read as text\n"+
						"  if it should be the token, build again with --special", name))
					left = 0
				}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

func (o *DataOptions) encoder() func([]uint32, []byte) []uint32 {
	if o.Special {
		return o.Tokenizer.NewEncoder().EncodeSpecial
	}
	return o.Tokenizer.NewEncoder().Encode
}

// BuildData tokenises text into a data set at o.Dir and stores the tokenizer beside it, so that a run needs nothing
// else.
func BuildData(ctx context.Context, text Text, o DataOptions) (dataset.Manifest, corpus.Report, error) {
	if o.Tokenizer == nil {
		return dataset.Manifest{}, corpus.Report{}, errors.New("there is no Tokenizer\n" +
			"  make one with TrainTokenizer, or read one with tokenizer.Open")
	}
	end, err := o.Tokenizer.EndOfText()
	if err != nil {
		return dataset.Manifest{}, corpus.Report{}, err
	}
	text.Options.Out = o.Dir
	if o.TokenizerPath != "" {
		text.Options.Skip = tokenizer.Files(o.TokenizerPath)
	}
	r, docs, err := text.Open(ctx)
	if err != nil {
		return dataset.Manifest{}, corpus.Report{}, err
	}
	if o.Special {
		docs = splitAt(docs, o.Tokenizer.Token(end))
	} else if o.Warn != nil {
		docs = o.watch(docs)
	}
	m, err := dataset.Build(ctx, dataset.BuildOptions{
		Dir: o.Dir, Replace: o.Replace, Tokenizer: DatasetTokenizer(o.Tokenizer, o.TokenizerPath),
		TokenizerFile:   o.Tokenizer,
		TokenizerConfig: o.Tokenizer.ConfigJSON(),
		NewEncoder:      o.encoder,
		PromptEnd:       o.PromptEnd, Lost: func() *corpus.Loss { return r.Report().Lost },
		ValFraction: o.ValFraction, Threads: o.Threads,
	}, docs)
	return m, r.Report(), err
}

// OrGoSource returns the text, or, if it has no paths, the Go source on this machine, in the directory source.
func (t Text) OrGoSource() (text Text, source string, err error) {
	if len(t.Paths) > 0 {
		return t, "", nil
	}
	source, err = GoSource()
	return Text{Paths: []string{source}, Options: corpus.Options{Extensions: []string{".go"}}, Progress: t.Progress},
		source, err
}

// Read returns the first documents of the text, up to limit bytes.
func (t Text) Read(ctx context.Context, limit int64) (docs [][]byte, size int64, err error) {
	_, all, err := t.Open(ctx)
	if err != nil {
		return nil, 0, err
	}
	for d, err := range all {
		if err != nil {
			return nil, 0, err
		}
		docs = append(docs, d)
		if size += int64(len(d)); size >= limit {
			break
		}
	}
	return docs, size, nil
}
