package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"time"

	"anneal/corpus"
	"anneal/fasttext"
	"anneal/tokenizer"
)

// EvalTokenizer measures how well a tokenizer fits a text, for each group that by assigns its documents to.
func EvalTokenizer(ctx context.Context, text Text, tok *tokenizer.Tokenizer, by func(corpus.Document) string) (*tokenizer.Evaluator, corpus.Report, error) {
	e := tok.NewEvaluator()
	report, err := text.each(ctx, func(d corpus.Document) { e.Add(by(d), d.Text) })
	return e, report, err
}

// GroupBy returns a function that assigns the documents of text to groups: by "ext" (the extension of the file name,
// without .gz and .zst), "dir" (the first directory below a path of the text), "file", "script" (of most letters), or
// "model:FILE" (the label that a fastText model predicts). For "" all documents are one group.
func GroupBy(text Text, by string) (func(corpus.Document) string, error) {
	if path, ok := strings.CutPrefix(by, "model:"); ok {
		m, err := fasttext.Load(path)
		if err != nil {
			return nil, err
		}
		p := m.NewPredictor()
		return func(d corpus.Document) string {
			if best := p.Predict(d.Text, 1, 0); len(best) > 0 {
				return strings.TrimPrefix(best[0].Label, fasttext.LabelPrefix)
			}
			return "(none)"
		}, nil
	}
	switch by {
	case "":
		return func(corpus.Document) string { return "" }, nil
	case "ext":
		return func(d corpus.Document) string {
			name := strings.TrimSuffix(strings.TrimSuffix(d.Source, ".gz"), ".zst")
			return cmp.Or(filepath.Ext(name), "(none)")
		}, nil
	case "file":
		return func(d corpus.Document) string { return d.Source }, nil
	case "script":
		return func(d corpus.Document) string { return cmp.Or(tokenizer.Script(d.Text), "(none)") }, nil
	case "dir":
		return func(d corpus.Document) string { return firstDir(text.Paths, d.Source) }, nil
	}
	return nil, fmt.Errorf("%w by %q", ErrGroup, by)
}

// ErrGroup says that [GroupBy] does not know the grouping.
var ErrGroup = errors.New("documents cannot be grouped")

// firstDir returns the first directory of path below the longest matching root, or "." if the file is directly in it.
func firstDir(roots []string, path string) string {
	best, found := "", "."
	for _, root := range roots {
		rel, err := filepath.Rel(root, path)
		if err != nil || !filepath.IsLocal(rel) || len(root) < len(best) {
			continue
		}
		best, found = root, "."
		if dir, _, deeper := strings.Cut(filepath.ToSlash(rel), "/"); deeper {
			found = dir
		}
	}
	return found
}

// TokenizerSpeed is the speed of training and using a tokenizer.
type TokenizerSpeed struct {
	TrainMBPerSecond       float64 `json:"train_mb_per_second"`       // all threads, without reading
	PretokenizeMBPerSecond float64 `json:"pretokenize_mb_per_second"` // one core
	EncodeColdMBPerSecond  float64 `json:"encode_cold_mb_per_second"` // one core, empty caches
	EncodeWarmMBPerSecond  float64 `json:"encode_warm_mb_per_second"` // one core, the same text again
	BytesPerToken          float64 `json:"bytes_per_token"`
	Bytes                  int64   `json:"bytes"`
	VocabSize              int     `json:"vocab_size"`
	TrainSeconds           float64 `json:"train_seconds"`
}

// encodeBytes is the size of the text for one pass of the encoder: it takes seconds even on slow machines.
const encodeBytes = 32 << 20

// BenchTokenizer reads up to limit bytes of text into memory, or of the Go source if text has no paths. It learns a
// vocabulary from it and encodes it twice.
func BenchTokenizer(ctx context.Context, text Text, limit int64, o tokenizer.TrainOptions) (TokenizerSpeed, error) {
	text, _, err := text.orGoSource()
	if err != nil {
		return TokenizerSpeed{}, err
	}
	docs, size, err := text.read(ctx, limit)
	if err != nil {
		return TokenizerSpeed{}, err
	}
	s := TokenizerSpeed{Bytes: size}
	start := time.Now()
	tok, err := tokenizer.Train(ctx, o, each(docs))
	if err != nil {
		return TokenizerSpeed{}, err
	}
	s.TrainSeconds = time.Since(start).Seconds()
	s.TrainMBPerSecond = float64(size) / 1e6 / s.TrainSeconds
	s.VocabSize = tok.VocabSize()

	b := &dataBench{threads: 1, source: docs}
	for n, done := 0, 0; n < len(docs); n++ {
		if done += len(docs[n]); done >= encodeBytes {
			b.source = docs[:n+1]
			break
		}
	}
	s.PretokenizeMBPerSecond = b.pretokenize(tok)
	s.EncodeColdMBPerSecond, s.EncodeWarmMBPerSecond = b.encode(tok)
	fit, err := tokenizer.Evaluate(tok, each(b.source))
	s.BytesPerToken = fit.BytesPerToken
	return s, err
}

// orGoSource returns the text, or, if it has no paths, the Go source on this machine, in the directory source.
func (t Text) orGoSource() (text Text, source string, err error) {
	if len(t.Paths) > 0 {
		return t, "", nil
	}
	source, err = GoSource()
	return Text{Paths: []string{source}, Options: corpus.Options{Extensions: []string{".go"}}, Progress: t.Progress}, source, err
}

// read returns the first documents of the text, up to limit bytes.
func (t Text) read(ctx context.Context, limit int64) (docs [][]byte, size int64, err error) {
	_, all, err := t.open(ctx)
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

func each(docs [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, d := range docs {
			if !yield(d, nil) {
				return
			}
		}
	}
}
