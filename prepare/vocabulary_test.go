package prepare

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/corpus"
	"anneal/tokenizer"
)

// words writes n documents of made-up words into dir and returns their text.
func words(t *testing.T, dir string, n int) (docs []string) {
	t.Helper()
	for i := range n {
		var b strings.Builder
		for k := range 300 {
			fmt.Fprintf(&b, "wo%xrd%d ", (i*k)%97, k%11)
		}
		docs = append(docs, b.String())
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.txt", i)), []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return docs
}

// Each point of a sweep is what learning that size alone from the text that is not held out gives on the text that is.
func TestSweepIsLearningEachSize(t *testing.T) {
	dir := t.TempDir()
	docs := words(t, dir, 45)
	var learn, held [][]byte
	for i, d := range docs {
		if i%20 == 19 {
			held = append(held, []byte(d))
		} else {
			learn = append(learn, []byte(d))
		}
	}
	sweep, err := SweepVocabulary(context.Background(), Text{Paths: []string{dir}},
		VocabularyOptions{Sizes: []int{310, 300, 100_000, 300}, Width: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(sweep.Points) != 3 || sweep.Points[2].Vocab >= 100_000 {
		t.Fatalf("%d points %+v, want 300, 310 and what the text has words for", len(sweep.Points), sweep.Points)
	}
	for i, size := range []int{300, 310, 100_000} {
		tok, err := tokenizer.Train(context.Background(), tokenizer.TrainOptions{VocabSize: size}, documents(learn))
		if err != nil {
			t.Fatal(err)
		}
		want, err := tokenizer.Evaluate(tok, documents(held))
		if err != nil {
			t.Fatal(err)
		}
		p := sweep.Points[i]
		if p.Stats != want || p.Vocab != tok.VocabSize() || p.EmbeddingParams != int64(10*tok.VocabSize()) {
			t.Errorf("size %d: %+v\nwant %+v", size, p, want)
		}
	}
}

func TestGroupBy(t *testing.T) {
	text := Text{Paths: []string{"a/src", "a/src/lib", "b.txt"}}
	for _, c := range []struct{ by, source, content, want string }{
		{"ext", "x/y.go", "", ".go"}, {"ext", "x/y.jsonl.zst", "", ".jsonl"}, {"ext", "x/Makefile", "", "(none)"},
		{"ext", "x/y.jsonl.zstd", "", ".jsonl"}, {"ext", "x/Y.JSONL.GZ", "", ".jsonl"},
		{"dir", "a/src/net/http/x.go", "", "net"}, {"dir", "a/src/x.go", "", "."},
		{"dir", "a/src/lib/deep/x.go", "", "deep"}, {"dir", "b.txt", "", "."},
		{"file", "b.txt", "", "b.txt"}, {"script", "b.txt", "привет world", "Cyrillic"},
		{"script", "b.txt", "1+1", "(none)"}, {"", "b.txt", "x", ""},
	} {
		by, err := GroupBy(text, c.by)
		if err != nil {
			t.Fatal(err)
		}
		if got := by(corpus.Document{Source: c.source, Text: []byte(c.content)}); got != c.want {
			t.Errorf("%q of %s %q is %q, want %q", c.by, c.source, c.content, got, c.want)
		}
	}
	for _, by := range []string{"language", "model:absent.bin"} {
		if _, err := GroupBy(text, by); err == nil {
			t.Errorf("by %q: no error", by)
		}
	}
}

func documents(docs [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, d := range docs {
			if !yield(d, nil) {
				return
			}
		}
	}
}
