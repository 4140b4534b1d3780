package dataset

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func importInto(t testing.TB, opt BuildOptions, train, val iter.Seq2[[]uint32, error]) (Manifest, error) {
	opt.Tokenizer = byteTokenizer
	return Import(t.Context(), ImportOptions{BuildOptions: opt, Decode: func(dst []byte, ids []uint32) []byte {
		for _, id := range ids {
			dst = append(dst, byte(id))
		}
		return dst
	}}, train, val)
}

// What Documents yields makes the same dataset again, byte for byte: with the splits as they were, and, from all
// documents in the order of the input, with the splits chosen anew.
func TestImportedTokensMakeTheDatasetThatTheTextMade(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		docs := randomDocs(rapid.Uint64().Draw(rt, "seed"), rapid.IntRange(2, 60).Draw(rt, "documents"), 200)
		opt := BuildOptions{ValFraction: 0.2, ShardTokens: 2000}
		d := build(t, docs, opt)
		want := files(t, d.Dir)

		opt.Dir = t.TempDir()
		if _, err := importInto(t, opt, d.Documents(false), d.Documents(true)); err != nil {
			rt.Fatal(err)
		}
		got := files(t, opt.Dir)
		delete(want, manifestName) // the fraction asked for is not that of the text
		delete(got, manifestName)
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}

		opt.Dir = t.TempDir()
		if _, err := importInto(t, opt, tokens(docs), nil); err != nil {
			rt.Fatal(err)
		}
		got = files(t, opt.Dir)
		delete(got, manifestName)
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// tokens yields texts as tokens, from one reused buffer.
func tokens(docs []string) iter.Seq2[[]uint32, error] {
	return func(yield func([]uint32, error) bool) {
		var buf []uint32
		for _, d := range docs {
			buf = byteEncoder()(buf[:0], []byte(d))
			if !yield(buf, nil) {
				return
			}
			clear(buf)
		}
	}
}

func TestAnImportThatFailsLeavesNothing(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name  string
		train iter.Seq2[[]uint32, error]
		want  string
	}{
		{"an id beyond the vocabulary", func(yield func([]uint32, error) bool) {
			_ = yield([]uint32{1}, nil) && yield([]uint32{2, 257}, nil)
		}, "document 1: id 257"},
		{"EOT in a document", func(yield func([]uint32, error) bool) { yield([]uint32{256}, nil) },
			"document 0: id 256"},
		{"a reader that fails",
			func(yield func([]uint32, error) bool) { _ = yield([]uint32{1}, nil) && yield(nil, broken) }, "broken"},
		{"nothing", func(func([]uint32, error) bool) {}, "no documents"},
	} {
		dir := t.TempDir()
		_, err := importInto(t, BuildOptions{Dir: dir}, c.train, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(left) > 0 {
			t.Errorf("%s: left %v", c.name, left)
		}
		if _, err := os.Stat(filepath.Join(dir, manifestName)); err == nil {
			t.Errorf("%s: left a manifest", c.name)
		}
	}
}

func TestDocumentsStopsWhenAsked(t *testing.T) {
	d := build(t, randomDocs(1, 20, 50), BuildOptions{})
	n := 0
	for _, err := range d.Documents(false) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Error(fmt.Sprint(n, " documents, want 3"))
	}
}
