package dataset

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"anneal/internal/fileio"
	"anneal/internal/filetest"

	"github.com/google/go-cmp/cmp"
	"github.com/zeebo/xxh3"
	"pgregory.net/rapid"
)

// byteTokenizer has the 256 bytes and EOT.
var byteTokenizer = Tokenizer{Path: "bytes.json", SHA256: sha256.Sum256([]byte("bytes")), Vocab: 257, EOT: 256}

func byteEncoder() func([]uint32, []byte) []uint32 {
	return func(dst []uint32, text []byte) []uint32 {
		for _, c := range text {
			dst = append(dst, uint32(c))
		}
		return dst
	}
}

// sequence yields docs from one reused buffer, as Build allows.
func sequence(docs []string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		var buf []byte
		for _, d := range docs {
			buf = append(buf[:0], d...)
			if !yield(buf, nil) {
				return
			}
			clear(buf)
		}
	}
}

func build(t testing.TB, docs []string, opt BuildOptions) *Dataset {
	t.Helper()
	if opt.Dir == "" {
		opt.Dir = t.TempDir()
	}
	if opt.Tokenizer.Vocab == 0 {
		opt.Tokenizer = byteTokenizer
	}
	if opt.NewEncoder == nil {
		opt.NewEncoder = byteEncoder
	}
	if _, err := Build(t.Context(), opt, sequence(docs)); err != nil {
		t.Fatal(err)
	}
	d, err := Open(opt.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// randomDocs returns n documents of up to max bytes, all different.
func randomDocs(seed uint64, n, max int) []string {
	r := rand.New(rand.NewPCG(seed, 0))
	docs := make([]string, n)
	for i := range docs {
		b := make([]byte, r.IntN(max))
		for j := range b {
			b[j] = byte(r.Uint32())
		}
		docs[i] = fmt.Sprintf("%d:%s", i, b)
	}
	return docs
}

// stream is the whole token stream of a split.
func (p *split) all(t testing.TB) []uint32 {
	t.Helper()
	tokens := make([]uint32, p.tokens)
	if err := p.read(tokens, 0, &scratch{}); err != nil {
		t.Fatal(err)
	}
	return tokens
}

// documents cuts a stream of byteTokenizer back into texts.
func documents(t testing.TB, p *split) []string {
	t.Helper()
	var docs []string
	for _, id := range p.all(t) {
		if id == byteTokenizer.EOT {
			docs = append(docs, "")
		} else {
			docs[len(docs)-1] += string([]byte{byte(id)})
		}
	}
	return docs
}

// files returns the content of every file under dir.
func files(t testing.TB, dir string) map[string]string { return filetest.Contents(t, dir, "") }

// Both splits together hold each document once, in input order, on the side that its hash says, whatever the shard
// size.
func TestBuildRoundTrip(t *testing.T) {
	for _, vocab := range []int{257, 70000} { // u16 and u32
		for _, limit := range []uint64{1, 1000, 1 << 27} {
			docs := randomDocs(1, 60, 200)
			tok := byteTokenizer
			tok.Vocab = vocab
			d := build(t, docs, BuildOptions{Tokenizer: tok, ValFraction: 0.25, ShardTokens: limit})
			if err := d.Verify(); err != nil {
				t.Fatal(err)
			}
			var want [2][]string
			var bytes [2]uint64
			for _, doc := range docs {
				side := 0
				if float64(xxh3.HashString(doc)) < 0.25*(1<<63)*2 {
					side = 1
				}
				want[side] = append(want[side], doc)
				bytes[side] += uint64(len(doc))
			}
			for side, p := range []*split{&d.train, &d.val} {
				info := []SplitInfo{d.Manifest.Train, d.Manifest.Val}[side]
				if diff := cmp.Diff(want[side], documents(t, p)); diff != "" {
					t.Errorf("vocab %d, shards of %d, split %d: %s", vocab, limit, side, diff)
				}
				if n := uint64(len(want[side])); info.Documents != n || info.Tokens != n+bytes[side] ||
					info.TextBytes != bytes[side] {
					t.Errorf("vocab %d, shards of %d, split %d: counts %+v; want %d documents, %d bytes",
						vocab, limit, side, info.Counts, n, bytes[side])
				}
				if limit == 1 && len(info.Shards) != len(want[side]) || limit == 1<<27 && len(info.Shards) != 1 {
					t.Errorf("shards of %d tokens: %d shards for %d documents",
						limit, len(info.Shards), len(want[side]))
				}
			}
		}
	}
}

func TestBuildIsTheSameForAnyNumberOfThreads(t *testing.T) {
	docs := append(randomDocs(2, 200, 100), randomDocs(3, 20, 400_000)...)
	var want map[string]string
	for _, threads := range []int{1, 2, 5} {
		d := build(t, docs, BuildOptions{ValFraction: 0.1, ShardTokens: 1 << 20, Threads: threads})
		got := files(t, d.Dir)
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d threads: other bytes than 1 thread", threads)
		}
	}
	if len(want) < 4 {
		t.Errorf("only %d files: the test needs several shards", len(want))
	}
}

// However small the fraction and the input, both splits get a document as soon as there are two different ones, unless
// all are held out; equal documents stay on one side, and no document is lost.
func TestEachSplitGetsADocument(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		docs := rapid.SliceOfN(rapid.StringMatching("[abc]{1,2}"), 1, 8).Draw(rt, "docs")
		fraction := rapid.SampledFrom([]float64{0, 1e-9, 0.01, 0.3, 0.5, 0.99, 1}).Draw(rt, "fraction")
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		d := build(t, docs, BuildOptions{Dir: dir, ValFraction: fraction})
		train, val := documents(t, &d.train), documents(t, &d.val)
		for _, doc := range train {
			if slices.Contains(val, doc) {
				rt.Errorf("%q is in both splits: train %q, val %q", doc, train, val)
			}
		}
		different := len(slices.Compact(slices.Sorted(slices.Values(docs))))
		if fraction == 1 {
			if len(train) > 0 || len(val) != len(docs) {
				rt.Errorf("all held out, and %d of %d documents for training, %d for validation",
					len(train), len(docs), len(val))
			}
		} else if len(train) == 0 || (len(val) > 0) != (fraction > 0 && different > 1) {
			rt.Errorf("fraction %v, %d different documents: %d for training, %d for validation",
				fraction, different, len(train), len(val))
		}
		all := slices.Sorted(slices.Values(append(train, val...)))
		if diff := cmp.Diff(slices.Sorted(slices.Values(docs)), all); diff != "" {
			rt.Error(diff)
		}
	})
}

func TestDocumentsKeepTheirSideWhenOthersCome(t *testing.T) {
	docs := randomDocs(4, 500, 30)
	few := build(t, docs[:250], BuildOptions{ValFraction: 0.2})
	all := build(t, docs, BuildOptions{ValFraction: 0.2})
	val := documents(t, &all.val)
	for _, doc := range documents(t, &few.val) {
		if !slices.Contains(val, doc) {
			t.Errorf("%q left the validation split when documents were added", doc)
		}
	}
	if n := len(val); n < 70 || n > 130 { // 100 ± 3.4 standard deviations
		t.Errorf("%d of 500 documents held out for a fraction of 0.2", n)
	}
}

// A build that is cancelled or fails leaves nothing behind, and one that was killed is cleaned up by the next.
func TestUnfinishedBuildIsNoDataset(t *testing.T) {
	docs := randomDocs(5, 2000, 2000)
	broken := errors.New("disk on fire")
	ctx, cancel := context.WithCancelCause(t.Context())
	for name, c := range map[string]struct {
		ctx  context.Context
		docs iter.Seq2[[]byte, error]
		enc  func() func([]uint32, []byte) []uint32
		want string
	}{
		"cancelled": {ctx, func(yield func([]byte, error) bool) {
			n := 0
			for d := range sequence(docs) {
				if n++; n == 1500 {
					cancel(errors.New("interrupted"))
				}
				if !yield(d, nil) {
					return
				}
			}
		}, byteEncoder, "interrupted"},
		"read error": {t.Context(), func(yield func([]byte, error) bool) {
			for d := range sequence(docs) {
				if !yield(d, nil) {
					return
				}
			}
			yield(nil, broken)
		}, byteEncoder, "disk on fire"},
		"EOT in text": {t.Context(), sequence(docs), func() func([]uint32, []byte) []uint32 {
			return func(dst []uint32, text []byte) []uint32 {
				if string(text) == docs[1234] {
					dst = append(dst, 256)
				}
				return dst
			}
		}, "document 1234: the tokenizer produced id 256"},
		"id out of range": {t.Context(), sequence(docs), func() func([]uint32, []byte) []uint32 {
			return func(dst []uint32, text []byte) []uint32 { return append(dst, 257) }
		}, "document 0: the tokenizer produced id 257"},
		"nothing": {t.Context(), sequence(nil), byteEncoder, "no documents"},
	} {
		opt := BuildOptions{
			Dir: t.TempDir(), Tokenizer: byteTokenizer, NewEncoder: c.enc, ShardTokens: 100_000, Threads: 3,
		}
		_, err := Build(c.ctx, opt, c.docs)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), opt.Dir) {
			t.Errorf("%s: error %v; should hold %q and the directory", name, err, c.want)
		}
		if _, err := Open(opt.Dir); err == nil || !strings.Contains(err.Error(), opt.Dir) {
			t.Errorf("%s: Open says %v", name, err)
		}
		for f := range files(t, opt.Dir) {
			t.Errorf("%s: left %s behind", name, f)
		}
		for _, f := range []string{"train/00077.tokens" + temporary, "val/00005.tokens"} { // as if killed
			os.MkdirAll(filepath.Dir(filepath.Join(opt.Dir, f)), 0o755)
			os.WriteFile(filepath.Join(opt.Dir, f), []byte("torn"), 0o644)
		}
		build(t, docs[:3], BuildOptions{Dir: opt.Dir})
		if n := len(files(t, opt.Dir)); n != 2 { // the manifest and one shard
			t.Errorf("%s: the next build has %d files", name, n)
		}
	}
}

func TestBuildDoesNotReplaceUnlessAsked(t *testing.T) {
	d := build(t, []string{"one", "two"}, BuildOptions{})
	opt := BuildOptions{Dir: d.Dir, Tokenizer: byteTokenizer, NewEncoder: byteEncoder}
	if _, err := Build(t.Context(), opt, sequence([]string{"three"})); err == nil ||
		!strings.Contains(err.Error(), d.Dir) {
		t.Errorf("building over a dataset: %v", err)
	}
	if err := d.Verify(); err != nil {
		t.Error(err)
	}
	opt.Replace, opt.TokenizerFile = true, strings.NewReader("{}")
	if m, err := Build(t.Context(), opt, sequence([]string{"three"})); err != nil || m.Train.Documents != 1 {
		t.Errorf("replacing: %v, %+v", err, m)
	}
	if kept := files(t, d.Dir)[tokenizerName]; kept != "{}" {
		t.Errorf("the tokenizer beside the shards is %q", kept)
	}
}

func BenchmarkBuild(b *testing.B) {
	docs := randomDocs(6, 1000, 20_000)
	total := 0
	for _, d := range docs {
		total += len(d)
	}
	b.SetBytes(int64(total))
	for b.Loop() {
		opt := BuildOptions{Dir: b.TempDir(), Tokenizer: byteTokenizer, NewEncoder: byteEncoder, ValFraction: 0.01}
		if _, err := Build(b.Context(), opt, sequence(docs)); err != nil {
			b.Fatal(err)
		}
	}
}

// Two processes do not build into one directory: their shards would become each other's.
func TestBuildHasItsDirectoryAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no locks there")
	}
	opt := BuildOptions{Dir: t.TempDir(), Tokenizer: byteTokenizer, NewEncoder: byteEncoder}
	var second error
	_, err := Build(t.Context(), opt, func(yield func([]byte, error) bool) {
		_, second = Build(t.Context(), opt, sequence([]string{"other"}))
		yield([]byte("text"), nil)
	})
	if err != nil || !errors.Is(second, fileio.ErrLocked) {
		t.Errorf("first %v, second %v", err, second)
	}
}

// A dataset that is held out as a whole is good for all but training, which says so.
func TestAWhollyHeldOutDatasetIsNotTrainedOn(t *testing.T) {
	docs := randomDocs(7, 20, 30)
	d := build(t, docs, BuildOptions{ValFraction: 1, ShardTokens: 100})
	if err := d.Verify(); err != nil {
		t.Fatal(err)
	}
	if m := d.Manifest; m.Train.Documents != 0 || m.Val.Documents != 20 {
		t.Errorf("%d documents for training, %d held out", m.Train.Documents, m.Val.Documents)
	}
	if l, err := d.Lengths(true); err != nil || l.Longest == 0 {
		t.Errorf("lengths %+v, %v", l, err)
	}
	if _, err := d.ValLoader(8); err != nil {
		t.Error(err)
	}
	for _, kind := range []Packing{Concat, BestFit, Pad} {
		_, err := d.PackedLoader(kind, 8, 1)
		_, also := d.Utilisation(kind, 8)
		for _, err := range []error{err, also} {
			if !errors.Is(err, ErrNoTraining) || !strings.Contains(err.Error(), "--val 0.01") {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
	_, err := Build(t.Context(), BuildOptions{Dir: t.TempDir(), Tokenizer: byteTokenizer, NewEncoder: byteEncoder,
		ValFraction: 1}, sequence(nil))
	if err == nil || !strings.Contains(err.Error(), "no documents") {
		t.Errorf("of no documents: %v", err)
	}
}

// What Build cannot do without is named: it would end the process in a goroutine of its own.
func TestBuildNeedsDocumentsAndAnEncoder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	o := BuildOptions{Dir: dir, Tokenizer: Tokenizer{Vocab: 10}}
	none := func(func([]byte, error) bool) {}
	if _, err := Build(t.Context(), o, none); err == nil || !strings.Contains(err.Error(), "NewEncoder") {
		t.Errorf("without an encoder: %v", err)
	}
	o.NewEncoder = func() func([]uint32, []byte) []uint32 { return nil }
	if _, err := Build(t.Context(), o, nil); err == nil || !strings.Contains(err.Error(), "documents") {
		t.Errorf("without documents: %v", err)
	}
	if Exists(dir) {
		t.Error("there is a dataset")
	}
}
