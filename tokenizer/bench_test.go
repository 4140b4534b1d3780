package tokenizer

import (
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

// BenchmarkEncodeWarm encodes the same texts again and again with one encoder.
func BenchmarkEncodeWarm(b *testing.B) {
	e := trainSample(b).NewEncoder()
	docs, size := sourceSample(b, 16<<20)
	var ids []uint32
	for _, d := range docs {
		ids = e.Encode(ids[:0], d)
	}
	b.SetBytes(size)
	for b.Loop() {
		for _, d := range docs {
			ids = e.Encode(ids[:0], d)
		}
	}
}

// BenchmarkEncodeCold starts each round with empty caches.
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
