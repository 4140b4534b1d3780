package prepare

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/corpus"
	"anneal/dataset"
	"anneal/dataset/score"
	"anneal/tokenizer"

	"github.com/google/go-cmp/cmp"
)

// goData builds a small data set of Go source, which every machine with Go has.
func goData(t *testing.T) string {
	t.Helper()
	source, err := GoSource()
	if err != nil {
		t.Fatal(err)
	}
	text := Text{Options: corpus.Options{Extensions: []string{".go"}}}
	for _, dir := range []string{"strconv", "strings", "bytes", "io", "sort", "fmt", "os"} {
		text.Paths = append(text.Paths, filepath.Join(source, dir))
	}
	tok, _, err := TrainTokenizer(context.Background(), text, tokenizer.TrainOptions{VocabSize: 512})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	_, _, err = BuildData(context.Background(), text, DataOptions{
		Dir: dir, Tokenizer: tok, TokenizerPath: "tokenizer.json", ValFraction: 0.1,
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// The scores are those of the texts, in their order, in the same bytes however many threads work, and the report shows
// both ends.
func TestScoresAreThoseOfTheTexts(t *testing.T) {
	dir := goData(t)
	d, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	tok, err := tokenizer.Load(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range score.Metrics {
		var files []string
		var report *ScoreReport
		for _, threads := range []int{1, 2, 7} {
			if report, err = Score(context.Background(),
				ScoreOptions{Dir: dir, By: m.Name, Threads: threads}); err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(d.ScoresPath(m.Name))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, string(raw))
		}
		if files[0] != files[1] || files[0] != files[2] {
			t.Errorf("%s: other bytes with other threads", m.Name)
		}
		s, err := d.ReadScores(m.Name)
		if err != nil {
			t.Fatal(err)
		}
		scoreOf, doc, low := m.New(), 0, 0
		for tokens, err := range d.Documents(false) {
			if err != nil {
				t.Fatal(err)
			}
			if want := float32(scoreOf(tok.Decode(nil, tokens))); s.Values[doc] != want {
				t.Errorf("%s: document %d has %v, its text %v", m.Name, doc, s.Values[doc], want)
			}
			if s.Values[doc] < s.Values[low] {
				low = doc
			}
			doc++
		}
		counted := 0
		for _, b := range report.Bins {
			counted += b.Documents
		}
		if counted != doc || report.Documents != doc || report.Low[0].Document != low ||
			report.Quantiles[0] != float64(s.Values[low]) || report.High[0].Score != report.Quantiles[6] {
			t.Errorf("%s: of %d documents the report counts %d; its lowest is %+v, want document %d",
				m.Name, doc, counted, report.Low[0], low)
		}
	}
}

// Scores that somebody else has given keep their order; what cannot be asked for is refused before anything is read.
func TestScoresFromAFile(t *testing.T) {
	dir := goData(t)
	d, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	path := filepath.Join(t.TempDir(), "Quality.jsonl")
	var lines strings.Builder
	var want []float32
	for i := range d.Manifest.Train.Documents {
		fmt.Fprintf(&lines, "{\"score\": %d}\n", i*i%17)
		want = append(want, float32(i*i%17))
	}
	if err := os.WriteFile(path, []byte(lines.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Score(context.Background(), ScoreOptions{Dir: dir, By: "file:" + path}); err == nil ||
		!strings.Contains(err.Error(), "--name") {
		t.Errorf("a name with a capital letter: %v", err)
	}
	if _, err := Score(context.Background(), ScoreOptions{Dir: dir, By: "file:" + path, Name: "quality"}); err != nil {
		t.Fatal(err)
	}
	s, err := d.ReadScores("quality")
	if diff := cmp.Diff(want, s.Values); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	lines.WriteString("1\n")
	if err := os.WriteFile(path, []byte(lines.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	for want, o := range map[string]ScoreOptions{
		"one line per document": {By: "file:" + path, Name: "quality"},
		"unknown scores":        {By: "beauty"}, "--model RUN": {By: "loss"}, "do not use a model": {By: "mtld",
			Loss: func(context.Context, string, func(done, total int64)) (string, []float32, error) {
				return "", nil, nil
			}},
	} {
		o.Dir = dir
		if _, err := Score(context.Background(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}
