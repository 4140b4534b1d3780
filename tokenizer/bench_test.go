package tokenizer

import (
	"bytes"
	"context"
	"io/fs"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// goSource is the Go distribution's own source: one document per file, in path order. About 86 MB.
var goSource = sync.OnceValue(func() [][]byte {
	root := os.Getenv("GOROOT")
	if root == "" {
		out, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			return nil
		}
		root = strings.TrimSpace(string(out))
	}
	var docs [][]byte
	filepath.WalkDir(filepath.Join(root, "src"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.HasSuffix(path, ".go") {
			if b, err := os.ReadFile(path); err == nil {
				docs = append(docs, b)
			}
		}
		return nil
	})
	return docs
})

// sourceSample is about size bytes of goSource, spread over it; it skips the benchmark where there is no source.
func sourceSample(b testing.TB, size int) (docs [][]byte, bytes int64) {
	b.Helper()
	all := goSource()
	total := 0
	for _, d := range all {
		total += len(d)
	}
	if total == 0 {
		b.Skip("no Go source tree found")
	}
	stride := max(1, total/size)
	for i := 0; i < len(all); i += stride {
		docs = append(docs, all[i])
		bytes += int64(len(all[i]))
	}
	return docs, bytes
}

func BenchmarkSplit(b *testing.B) {
	docs, size := sourceSample(b, 1<<30)
	for _, p := range patterns {
		b.Run(p.name, func(b *testing.B) {
			s := p.new()
			ends := make([]int, 512)
			b.SetBytes(size)
			for b.Loop() {
				for _, d := range docs {
					s.reset(d)
					for s.next(ends) > 0 {
					}
				}
			}
		})
	}
}

func trainSample(b *testing.B) *Tokenizer {
	docs, _ := sourceSample(b, 10<<20)
	tok, err := Train(context.Background(), TrainOptions{VocabSize: 32768}, yieldAll(docs))
	if err != nil {
		b.Fatal(err)
	}
	return tok
}

func yieldAll(docs [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, d := range docs {
			if !yield(d, nil) {
				return
			}
		}
	}
}

func BenchmarkTrain(b *testing.B) {
	docs, size := sourceSample(b, 1<<30)
	b.SetBytes(size)
	for b.Loop() {
		if _, err := Train(context.Background(), TrainOptions{VocabSize: 32768}, yieldAll(docs)); err != nil {
			b.Fatal(err)
		}
	}
}

// prose keeps the text of comments that stand on lines of their own: English, mostly.
func prose(docs [][]byte) (out [][]byte, size int64) {
	for _, d := range docs {
		var b []byte
		for line := range bytes.Lines(d) {
			if text, ok := bytes.CutPrefix(bytes.TrimLeft(line, "\t "), []byte("// ")); ok {
				b = append(b, text...)
			}
		}
		out = append(out, b)
		size += int64(len(b))
	}
	return out, size
}

// BenchmarkEncodeWarm encodes the same texts again and again with one encoder.
func BenchmarkEncodeWarm(b *testing.B) {
	tok := trainSample(b)
	source, sourceSize := sourceSample(b, 16<<20)
	all, _ := sourceSample(b, 1<<30)
	comments, proseSize := prose(all)
	for _, c := range []struct {
		name string
		docs [][]byte
		size int64
	}{{"source", source, sourceSize}, {"prose", comments, proseSize}} {
		b.Run(c.name, func(b *testing.B) {
			e := tok.NewEncoder()
			var ids []uint32
			round := func() {
				for _, d := range c.docs {
					ids = e.Encode(ids[:0], d)
				}
			}
			round()
			b.SetBytes(c.size)
			for b.Loop() {
				round()
			}
		})
	}
}

// BenchmarkEncodeCold encodes everything once with an encoder that starts with empty caches.
func BenchmarkEncodeCold(b *testing.B) {
	tok := trainSample(b)
	docs, size := sourceSample(b, 1<<30)
	var ids []uint32
	b.SetBytes(size)
	for b.Loop() {
		e := tok.NewEncoder()
		for _, d := range docs {
			ids = e.Encode(ids[:0], d)
		}
	}
}

// BenchmarkEncodeWorstCase encodes ten megabytes of one pretoken.
func BenchmarkEncodeWorstCase(b *testing.B) {
	tok := trainSample(b)
	for name, unit := range map[string]string{"letters": "a", "spaces": " ", "words": "therefore"} {
		b.Run(name, func(b *testing.B) {
			text := bytes.Repeat([]byte(unit), 10_000_000/len(unit))
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				tok.NewEncoder().Encode(nil, text)
			}
		})
	}
}
