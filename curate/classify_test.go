package curate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anneal/corpus"
	"anneal/fasttext"
)

// languages are three made of syllables of their own.
var languages = map[string]string{"aa": "ka lo mi", "bb": "sch ung er", "cc": "že ří ů"}

func writeLanguage(t *testing.T, path, name string, documents int, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	syllables := strings.Fields(languages[name])
	var b bytes.Buffer
	for range documents {
		b.WriteString(`{"text":"`)
		for range 12 + rng.IntN(20) {
			for range 1 + rng.IntN(4) {
				b.WriteString(syllables[rng.IntN(len(syllables))])
			}
			b.WriteString([]string{" ", " ", `\n`, ` __label__cc `}[min(rng.IntN(4), rng.IntN(8))%4])
		}
		b.WriteString("\"}\n")
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A classifier that was learnt from documents keeps the languages it is told to in a pipeline, and says in the signals
// which language each document is.
func TestLanguageKeepsWhatItIsTold(t *testing.T) {
	dir := t.TempDir()
	read, left := 0, 0
	x := Examples{Report: func(r corpus.Report) {
		read += r.Documents
		for _, rej := range r.Rejects {
			left += rej.Count
		}
	}}
	for _, name := range slices.Sorted(maps.Keys(languages)) {
		path := filepath.Join(dir, name+".jsonl")
		writeLanguage(t, path, name, 150, 1)
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString("broken\n")
			f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		x.Kinds = append(x.Kinds, Kind{Label: name, Paths: []string{path}})
	}
	o := fasttext.DefaultTrainOptions()
	o.Dim, o.MinN, o.MaxN, o.Bucket, o.LR = 8, 2, 3, 500, 0.5
	m, rep, err := TrainClassifier(t.Context(), x, dir, 0.2, o)
	if err != nil {
		t.Fatal(err)
	}
	if rep.Trained+rep.Held.Examples != 450 || rep.Held.Examples < 50 || rep.Held.Accuracy < 0.99 ||
		len(rep.Held.Labels) != 3 {
		t.Fatalf("%d examples trained, held out: %+v", rep.Trained, rep.Held)
	}
	if read != 450 || left != 3 {
		t.Errorf("reported: %d documents and %d rejects, want 450 and 3", read, left)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".examples-*")); left != nil {
		t.Errorf("%v are left", left)
	}
	if err := m.Save(filepath.Join(dir, "lid.bin")); err != nil {
		t.Fatal(err)
	}
	if e, err := EvaluateClassifier(t.Context(), m, x); err != nil || e.Examples != 450 || e.Accuracy < 0.99 {
		t.Errorf("on all examples: %+v, %v", e, err)
	}
	text := fmt.Sprintf("signals: true\nstages:\n  - language: {model: lid.bin, keep: [aa, cc]}\n"+
		"  - quality: {model: %q, label: aa, score: {min: 0, max: 0.3}}\n", filepath.Join(dir, "lid.bin"))
	p, err := Parse([]byte(text), filepath.Join(dir, "p.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for name := range languages {
		paths = append(paths, filepath.Join(dir, "new-"+name+".jsonl"))
		writeLanguage(t, paths[len(paths)-1], name, 20, 2)
	}
	out, err := Run(t.Context(), Options{
		Pipeline: p, Paths: paths, Dir: filepath.Join(dir, "out"), Workers: 2, Read: corpus.Options{},
	})
	if err != nil {
		t.Fatal(err)
	}
	dropped := map[string]int{}
	for _, s := range out.Report.Stages {
		for _, r := range s.Rules {
			dropped[s.Name+"."+r.Name] += r.Documents
		}
	}
	if out.Report.Kept != 20 || dropped["language.score"] != 20 || dropped["quality.score"] != 20 {
		t.Errorf("kept %d, dropped %v; want 20 of each language", out.Report.Kept, dropped)
	}
	d := &Doc{Text: []byte("schung erer ungsch")}
	f := Language(m, []string{"aa"})
	if v := f.Apply(d); !v.Drop || v.Rule != "language.score" || v.Value > 0.2 {
		t.Errorf("a document of another language: %+v", v)
	}
	if s := d.Signals; len(s) != 2 || s[0].Name != "language.best bb" || s[0].Value < 0.8 ||
		s[1].Name != "language.score" {
		t.Errorf("its signals are %+v", s)
	}
	for _, f := range []*Filter{Language(m, []string{"nobody's"}), Quality(m, "nobody's")} {
		if v := f.Apply(&Doc{Text: []byte("schung erer ungsch")}); !v.Drop || v.Value != 0 {
			t.Errorf("%s by a label that the model does not know: %+v, want a score of 0", f.Name, v)
		}
	}
}

// Copies of a text are all held out or all learnt from, whatever their labels and blanks.
func TestHoldoutIsByText(t *testing.T) {
	dir := t.TempDir()
	var documents, lines bytes.Buffer
	for i := range 400 {
		fmt.Fprintf(&documents, "{\"text\":\"text\\nnumber n%d\"}\n", i)
		fmt.Fprintf(&lines, "__label__b text number n%d __label__c\n", i)
	}
	writeFiles(t, dir, map[string]string{"a.jsonl": documents.String(), "b.txt": lines.String()})
	o := fasttext.DefaultTrainOptions()
	o.Dim = 2
	_, rep, err := TrainClassifier(t.Context(), Examples{
		Kinds: []Kind{{Label: "a", Paths: []string{filepath.Join(dir, "a.jsonl")}}},
		Lines: []string{filepath.Join(dir, "b.txt")},
	}, dir, 0.5, o)
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]int{}
	for _, l := range rep.Held.Labels {
		held[l.Label] = l.Examples
	}
	if held["a"] != held["b"] || held["a"] < 150 || held["a"] > 250 {
		t.Errorf("of 400 texts with two labels, %d are held out with one and %d with the other", held["a"], held["b"])
	}
}

// A pipeline with another model is another pipeline, and faults in what a stage is told teach.
func TestClassifierStagesNeedTheirModel(t *testing.T) {
	dir := t.TempDir()
	model := func(name, lines string) {
		o := fasttext.DefaultTrainOptions()
		o.Dim = 2
		m, err := fasttext.Train(context.Background(), strings.NewReader(lines), int64(len(lines)), o)
		if err == nil {
			err = m.Save(filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	model("q.bin", "__label__hq a b\n__label__no c d\n")
	model("r.bin", "__label__hq a b\n__label__no c e\n")
	os.WriteFile(filepath.Join(dir, "bad.bin"), []byte("what?"), 0o644)
	parse := func(stage string) (*Pipeline, error) {
		return Parse([]byte("stages:\n  - "+stage+"\n"), filepath.Join(dir, "p.yaml"))
	}
	a, err := parse("quality: {model: q.bin, label: hq}")
	if err != nil {
		t.Fatal(err)
	}
	b, err := parse("quality: {model: r.bin, label: hq}")
	if err != nil || a.Hash() == b.Hash() {
		t.Errorf("another model has the hash %s, too (%v)", a.Hash(), err)
	}
	for stage, want := range map[string]string{
		"quality":                                     "needs model",
		"quality: {model: q.bin}":                     "needs label",
		"quality: {model: q.bin, label: good}":        "no label \"good\"",
		"language: {model: q.bin, keep: [hq, en]}":    "try one of hq, no",
		"language: {model: q.bin, keep: [no]}":        "",
		"language: {model: q.bin, keep: []}":          "needs keep", // or it would drop every document
		"language: {model: none.bin, keep: [hq]}":     "none.bin",
		"language: {model: bad.bin, keep: [hq]}":      "another format",
		"quality: {model: q.bin, label: hq, min: .5}": "unknown key min",
	} {
		if _, err := parse(stage); want == "" && err != nil ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want an error with %q", stage, err, want)
		}
	}
}

// Lines of fastText's format are examples, too; what is in the way is said.
func TestClassifierLearnsFromLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines.txt")
	lines := "\ufeff" + strings.Repeat("__label__x one two\nno label here\n"+
		"__label__y three "+strings.Repeat("four ", 300_000)+"\n", 3)
	if err := os.WriteFile(path, []byte(lines+"__label__y three"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := fasttext.DefaultTrainOptions()
	o.Dim, o.LR, o.Epoch = 2, 1, 20
	m, rep, err := TrainClassifier(t.Context(), Examples{Lines: []string{path}}, t.TempDir(), 0, o)
	if err != nil || rep.Trained != 7 || rep.Held.Examples != 0 {
		t.Fatalf("%+v, %v", rep, err)
	}
	if got := m.NewPredictor().Predict([]byte("three\n"), 1, 0); got[0].Label != "y" {
		t.Errorf("three is %v", got)
	}
	if _, err := EvaluateClassifier(t.Context(), m, Examples{}); err == nil ||
		!strings.Contains(err.Error(), "try --label") {
		t.Errorf("nothing to measure on: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := TrainClassifier(ctx, Examples{Lines: []string{path}}, t.TempDir(), 0, o); !errors.Is(err,
		context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}
