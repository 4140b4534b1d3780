package prepare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"anneal/corpus"
	"anneal/fasttext"
	"anneal/tokenizer"
)

// EvalTokenizer measures how well a tokenizer fits a text, for each group that by assigns its documents to.
func EvalTokenizer(ctx context.Context, text Text, tok *tokenizer.Tokenizer,
	by func(corpus.Document) string) (*tokenizer.Evaluator, corpus.Report, error) {
	e := tok.NewEvaluator()
	report, err := text.each(ctx, func(d corpus.Document) { e.Add(by(d), d.Text) })
	return e, report, err
}

// GroupBy returns a function that assigns the documents of text to groups: by "ext" (the extension of the file name, as
// --ext takes it), "dir" (the first directory below a path of the text), "file", "script" (of most letters), or
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
		return func(d corpus.Document) string { return cmp.Or(corpus.ExtensionOf(d.Source), "(none)") }, nil
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
