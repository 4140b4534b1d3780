package curate

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"anneal/corpus"
)

// goroot is where the Go toolchain lies.
func goroot(tb testing.TB) string {
	tb.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// benchText is documents as a crawl has them: the prose of the comments of the Go standard library, a package each.
func benchText(b *testing.B) (docs [][]byte, size int64) {
	dirs, _ := filepath.Glob(filepath.Join(goroot(b), "src", "*"))
	for _, dir := range dirs {
		files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
		var doc strings.Builder
		for _, f := range files {
			text, _ := os.ReadFile(f)
			for line := range strings.Lines(string(text)) {
				if c, ok := strings.CutPrefix(strings.TrimSpace(line), "// "); ok {
					doc.WriteString(c + "\n")
				}
			}
			if doc.Len() > 5000 {
				docs = append(docs, []byte(doc.String()))
				size += int64(doc.Len())
				doc.Reset()
			}
		}
	}
	if size == 0 {
		b.Skip("no Go source on this machine")
	}
	return docs, size
}

// benchSource is the Go standard library, a file each.
func benchSource(b *testing.B) (docs [][]byte) {
	files, _ := filepath.Glob(filepath.Join(goroot(b), "src", "*", "*.go"))
	for _, f := range files {
		text, _ := os.ReadFile(f)
		docs = append(docs, text)
	}
	return docs
}

func BenchmarkFilters(b *testing.B) {
	prose, _ := benchText(b)
	source := benchSource(b)
	run := func(name string, docs [][]byte, filters ...*Filter) {
		size := 0
		for _, d := range docs {
			size += len(d)
		}
		b.Run(name, func(b *testing.B) {
			var d Doc
			n, start := 0, cpuTime()
			for b.Loop() {
				n++
				for _, text := range docs {
					d.Signals = d.Signals[:0]
					d.SetText(text)
					for _, f := range filters {
						f.Apply(&d)
					}
				}
			}
			b.ReportMetric(float64(n)*float64(size)/1e6/(cpuTime()-start).Seconds(), "MB/s-of-a-core")
		})
	}
	run("normalize", prose, Normalize())
	run("gopher_quality", prose, GopherQuality())
	run("gopher_repetition", prose, GopherRepetition())
	run("c4", prose, C4(true))
	run("fineweb", prose, FineWeb())
	run("pii", prose, PII())
	all := []*Filter{Normalize(), GopherRepetition(), GopherQuality(), C4(true), FineWeb(), PII()}
	run("all", prose, all...)
	run("all_source", source, all...)
	run("code_source", source, Normalize(), Code(), PII())
}

// BenchmarkRun is the whole way from files to shards on one worker, without filters and with all that FineWeb has.
func BenchmarkRun(b *testing.B) {
	docs, size := benchText(b)
	in := b.TempDir()
	var lines []byte
	for _, text := range docs {
		lines = append(corpus.AppendString(append(lines, `{"text":`...), text), "}\n"...)
	}
	if err := os.WriteFile(filepath.Join(in, "a.jsonl"), lines, 0o644); err != nil {
		b.Fatal(err)
	}
	for name, stages := range map[string]string{
		"none": "[normalize]",
		"all":  "[normalize, gopher_repetition, gopher_quality, {c4: {terminal_punctuation: false}}, fineweb, pii]",
	} {
		b.Run(name, func(b *testing.B) {
			p := mustParse(b, "stages: "+stages)
			b.SetBytes(size)
			for b.Loop() {
				if _, err := Run(context.Background(), Options{
					Pipeline: p, Paths: []string{in}, Dir: b.TempDir(), Workers: 1,
				}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
