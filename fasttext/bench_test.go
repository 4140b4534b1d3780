package fasttext

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// benchText returns documents of two kinds: prose (the comments of the Go standard library) and code.
func benchText(b *testing.B) (docs map[string][][]byte) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip("no Go source on this machine")
	}
	docs = map[string][][]byte{}
	files, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)), "src", "*", "*.go"))
	var prose []byte
	for _, f := range files {
		text, _ := os.ReadFile(f)
		docs["code"] = append(docs["code"], text)
		for line := range strings.Lines(string(text)) {
			if c, ok := strings.CutPrefix(strings.TrimSpace(line), "// "); ok {
				prose = append(append(prose, c...), '\n')
			}
		}
		if len(prose) > 5000 {
			docs["prose"], prose = append(docs["prose"], prose), nil
		}
	}
	return docs
}

// drawn returns a model with random vectors of the size of published ones: lid.176 has vectors of 16, character
// n-grams of 2 to 4 and 176 labels under a tree; DCLM's quality model has vectors of 100 and word pairs. Apart from
// which words are known, the content of the vectors does not affect the speed.
func drawn(docs [][]byte, labels int, change func(a *args)) *Model {
	a := args{Model: supervised}
	change(&a)
	var v vocabulary
	v.slots = make([]int32, 1<<16)
	for i, d := range docs {
		if i%2 == 0 { // half the words are unknown
			v.line(AppendLine(nil, "x", d))
		}
	}
	d := v.dictionary(&a, 0)
	d.words, d.counts = d.words[:d.nwords], d.counts[:d.nwords]
	for range labels {
		d.words, d.counts = append(d.words, "__label__x"), append(d.counts, 1)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	matrix := func(rows int) matrix {
		m := matrix{rows: rows, cols: int(a.Dim), dense: make([]float32, rows*int(a.Dim))}
		for i := range m.dense {
			m.dense[i] = float32(rng.Uint32()>>8)/(1<<24) - 0.5
		}
		return m
	}
	return newModel(a, d, matrix(d.nwords+int(a.Bucket)), matrix(labels))
}

func BenchmarkScores(b *testing.B) {
	for kind, docs := range benchText(b) {
		for name, m := range map[string]*Model{
			"language": drawn(docs, 176, func(a *args) { a.Dim, a.Loss, a.Bucket, a.MinN, a.MaxN = 16, HierarchicalSoftmax, 2_000_000, 2, 4 }),
			"quality":  drawn(docs, 2, func(a *args) { a.Dim, a.Loss, a.Bucket, a.WordNgrams = 100, Softmax, 500_000, 2 }),
		} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				p := m.NewPredictor()
				size := 0
				for _, d := range docs {
					size += len(d)
				}
				b.SetBytes(int64(size))
				for b.Loop() {
					for _, d := range docs {
						p.Scores(d)
					}
				}
			})
		}
	}
}
