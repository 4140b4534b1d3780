package curate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"anneal/corpus"
	"anneal/dedup"
	"anneal/internal/filetest"
)

const withDedup = `signals: true
stages:
  - normalize
  - gopher_quality: {words: {min: 20}}
  - dedup: {exact: [document, paragraph, line], near: true, verify: 0.6, ngrams: true, ngram_mib: 1, ngram_share: 0.5, min_words: 4}
  - c4: {terminal_punctuation: false}
  - dedup: {exact: none, rows: 2, bands: 40}
  - pii
`

// writeCopies writes files of JSON lines of which many repeat others: whole, with other words, or some lines.
func writeCopies(t testing.TB, dir string, files int) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	words := strings.Fields("the be to of and that have with a in river stone letter garden window paper morning " +
		"quiet water table")
	sentence := func() string {
		var b strings.Builder
		for range 6 + r.IntN(10) {
			fmt.Fprintf(&b, "%s%d ", words[r.IntN(len(words))], r.IntN(40))
		}
		return b.String() + "the end of it with a dot.\n"
	}
	var all [][]string
	for i := range files {
		var b strings.Builder
		for j := range 20 {
			var text []string
			for range 6 + r.IntN(12) {
				text = append(text, sentence())
			}
			if kind := r.IntN(7); kind < 4 && len(all) > 0 {
				old := all[r.IntN(len(all))]
				switch kind {
				case 0:
					text = old
				case 1:
					text = append(append([]string{}, old...), sentence())
				case 2:
					text[1], text[3] = old[1], old[2]
				case 3:
					text = nil
					for range 4 {
						o := all[r.IntN(len(all))]
						at := r.IntN(len(o) - 3)
						text = append(text, o[at:at+3]...)
					}
				}
			}
			all = append(all, text)
			b.WriteString(lineWithFields(i, j, strings.Join(text, "")))
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.jsonl", i)), []byte(b.String()),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A pipeline with comparisons leaves the same files for any number of workers and tasks, stopped after every split and
// every comparison, and nothing of what was between the passes.
func TestPassesDependOnTheInputAlone(t *testing.T) {
	in := t.TempDir()
	writeCopies(t, in, 9)
	o := Options{Split: 20_000, Pipeline: mustParse(t, withDedup), Paths: []string{in}, Dir: t.TempDir(), Workers: 1}
	first, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := contents(t, o.Dir)
	for _, rule := range first.Report.Stages[2].Rules[:3] {
		if rule.Documents == 0 {
			t.Errorf("dedup.%s dropped nothing: the input is no test", rule.Name)
		}
	}
	if first.Report.Stages[2].Changed == 0 || first.Report.Stages[4].Rules[1].Documents == 0 || first.Passes != 3 ||
		first.Splits < 15 {
		t.Fatalf("%d passes, %d splits, dedup_2 %+v: the input is no test",
			first.Passes, first.Splits, first.Report.Stages[4].Rules)
	}
	for name := range want {
		if strings.HasPrefix(name, betweenDir) {
			t.Errorf("%s was left", name)
		}
	}

	o.Dir, o.Workers = t.TempDir(), 7
	if _, err := Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	filetest.Same(t, "7 workers", contents(t, o.Dir), want)

	o.Dir, o.Workers = t.TempDir(), 2
	stops := 0
	var mu sync.Mutex
	times := map[place]int{}
	o.committed = func(p place) error {
		mu.Lock()
		defer mu.Unlock()
		times[p]++
		return errStopped
	}
	for {
		_, err := Run(context.Background(), o)
		if err == nil {
			break
		}
		if !errors.Is(err, errStopped) || stops > 2*first.Splits {
			t.Fatalf("after %d stops: %v", stops, err)
		}
		stops++
	}
	filetest.Same(t, fmt.Sprint(stops, " stops"), contents(t, o.Dir), want)
	for p, n := range times {
		if n != 1 {
			t.Errorf("step %d, split %d was done %d times over %d stops", p.step, p.split, n, stops)
		}
	}
	if len(times) != first.Splits+2 {
		t.Errorf("%d splits and comparisons were done, want %d", len(times), first.Splits+2)
	}
	o.committed = nil

	o.Dir, o.TaskCount = t.TempDir(), 4
	var group sync.WaitGroup
	var waits sync.Map
	for task := range 4 {
		o := o
		o.TaskIndex = task
		o.Waiting = func(what string) { waits.Store(what, true) }
		group.Go(func() {
			if _, err := Run(context.Background(), o); err != nil {
				t.Error(task, err)
			}
		})
	}
	group.Wait()
	filetest.Same(t, "4 tasks", contents(t, o.Dir), want)
	told := 0
	waits.Range(func(any, any) bool { told++; return true })
	if told == 0 {
		t.Error("no task said what it waits for")
	}
	o.TaskIndex, o.TaskCount, o.Workers = 0, 0, 3
	if out, err := Run(context.Background(), o); err != nil || out.Resumed != out.Splits || out.Done != out.Splits {
		t.Errorf("given again: %d of %d splits were done, %v", out.Resumed, out.Splits, err)
	}
	filetest.Same(t, "given again", contents(t, o.Dir), want)

	// A file that was written again with the same text is read again, and what depends on its text is not done again.
	changed := filepath.Join(in, "08.jsonl")
	if err := os.Chtimes(changed, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	again := map[int]int{}
	o.committed = func(p place) error {
		mu.Lock()
		defer mu.Unlock()
		again[p.step]++
		return nil
	}
	n := first.Splits / 3
	if out, err := Run(context.Background(), o); err != nil || out.Changed != 1 || again[0] != n || again[4] != 0 {
		t.Errorf("%d splits changed, %v done again of %d, %v", out.Changed, again, n, err)
	}
	filetest.Same(t, "touched", contents(t, o.Dir), want)

	// One that holds another text changes all that depends on it.
	line, _ := json.Marshal(map[string]string{
		"text": strings.Repeat("a text that is here only once, with words of it and a dot.\n", 9)})
	if err := os.WriteFile(changed, append(line, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := Run(context.Background(), o); err != nil || out.Changed != 1 || again[4] == 0 {
		t.Errorf("%d splits changed, %v done again of %d, %v", out.Changed, again, n, err)
	}
	o.committed = nil
	fresh := o
	fresh.Dir = t.TempDir()
	if _, err := Run(context.Background(), fresh); err != nil {
		t.Fatal(err)
	}
	filetest.Same(t, "after the change", contents(t, o.Dir), contents(t, fresh.Dir))
}

// A dedup stage keeps what `dedup.Run` keeps, with the same text, and counts the same.
func TestDedupStageIsDedup(t *testing.T) {
	in := t.TempDir()
	writeCopies(t, in, 5)
	p := mustParse(t, "stages:\n  - dedup: {exact: [document, paragraph, line], verify: 0.6, ngrams: true, "+
		"ngram_mib: 1, ngram_share: 0.5, min_words: 4}\n")
	o := Options{Pipeline: p, Paths: []string{in}, Dir: t.TempDir(), Split: 15_000}
	out, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := corpus.Open([]string{in}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := *p.passes[1].stages[0].compare
	d.Out = filepath.Join(t.TempDir(), "out")
	rep, err := dedup.Run(context.Background(), d,
		func(bool) iter.Seq2[corpus.Document, error] { return r.Documents() })
	if err != nil {
		t.Fatal(err)
	}
	got, want := texts(t, filepath.Join(o.Dir, "docs")), texts(t, filepath.Join(d.Out, "docs"))
	if len(got) != len(want) || len(got) < 20 {
		t.Fatalf("%d documents, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("document %d is %.90q, want %.90q", i, got[i], want[i])
		}
	}
	rules := out.Report.Stages[0].Rules
	c := out.Report.Comparisons[0]
	if rules[0].Documents != int(rep.Exact) || rules[1].Documents != int(rep.Near) ||
		rules[2].Documents != int(rep.NGrams) || rules[3].Documents != int(rep.Emptied) ||
		c.Clusters != rep.Clusters || c.LargestSize != rep.LargestSize || c.Units["line"] != rep.Units["line"] ||
		rep.Units["line"] == 0 || rep.Confirmed != c.Confirmed {
		t.Errorf("rules %+v and comparison %+v, want %+v", rules, c, rep)
	}
	if page := contents(t, o.Dir)["report.html"]; !strings.Contains(page,
		fmt.Sprintf("<b>%d</b> clusters", rep.Clusters)) {
		t.Error("report.html does not count the clusters")
	}
	lines := 0
	for name, content := range contents(t, o.Dir) {
		if strings.HasPrefix(name, "clusters") {
			in, err := openShard(o.Dir, name)
			if err != nil {
				t.Fatal(err, len(content))
			}
			for {
				line, err := in.next()
				if err == io.EOF {
					break
				}
				var c struct{ Document, Kept, Size int }
				if err := json.Unmarshal(line, &c); err != nil || c.Size < 2 || c.Kept > c.Document {
					t.Errorf("%s: %v", line, err)
				}
				lines++
			}
			in.close()
		}
	}
	if lines != int(rep.Exact+rep.Near)+rep.Clusters {
		t.Errorf("%d lines on documents in clusters, want %d", lines, int(rep.Exact+rep.Near)+rep.Clusters)
	}
}

func texts(t *testing.T, dir string) (all []string) {
	t.Helper()
	r, err := corpus.Open([]string{dir}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for d, err := range r.Documents() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(d.Text))
	}
	return all
}

// A sample is compared in itself, and leaves nothing behind.
func TestSampleIsCompared(t *testing.T) {
	in, tmp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", tmp)
	writeCopies(t, in, 5)
	out, err := Run(context.Background(), Options{
		Pipeline: mustParse(t, withDedup), Paths: []string{in}, Sample: 60, Split: 15_000,
	})
	left, _ := os.ReadDir(tmp)
	if err != nil || out.Report.Documents != 60 || out.Report.Stages[2].Changed == 0 || len(left) > 0 {
		t.Errorf("%d documents, %+v, %d files left, %v", out.Report.Documents, out.Report.Stages[2], len(left), err)
	}
}

// Decisions that are not those of the journal are refused.
func TestDamagedDecisionsAreRefused(t *testing.T) {
	in := t.TempDir()
	writeCopies(t, in, 4)
	o := Options{Pipeline: mustParse(t, withDedup), Paths: []string{in}, Dir: t.TempDir(), Workers: 1, Split: 15_000}
	o.committed = func(p place) error {
		if p.step == 1 {
			path := filepath.Join(o.Dir, betweenDir, "decisions-2")
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b[len(b)/2] ^= 1
			return os.WriteFile(path, b, 0o644)
		}
		return nil
	}
	if _, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), "is damaged\n  remove it") {
		t.Errorf("error %v", err)
	}
}

// Bounds that are changed over the signals and texts of an earlier run give what a new run with them gives.
func TestBoundsChangedOverSignals(t *testing.T) {
	in := t.TempDir()
	writeInput(t, in, 6)
	loose := "signals: true\ntexts: true\nstages: [normalize, gopher_repetition, " +
		"{gopher_quality: {words: {min: 20}}}, {c4: {terminal_punctuation: false}}, fineweb, pii]\n"
	for _, other := range []string{
		"signals: true\ntexts: true\nstages: [normalize, {gopher_repetition: {top_2_gram: {max: 0.5}, " +
			"duplicate_lines: {max: 0.1}}}, {gopher_quality: {words: {min: 60}, word_length: {max: 9}}}, " +
			"{c4: {terminal_punctuation: false, sentences: {min: 2}}}, {fineweb: {short_lines: {max: 1}, " +
			"newline_ratio: {max: 1}}}, pii]\n",
		"stages: [normalize, {gopher_repetition: {top_2_gram: {max: 1}, top_3_gram: {max: 1}, " +
			"top_4_gram: {max: 1}}}, {gopher_quality: {words: {min: 1}}}, {c4: {terminal_punctuation: false, " +
			"sentences: {min: 1}}}, {fineweb: {short_lines: {max: 1}}}, pii, {dedup: {exact: line}}, code]\n",
	} {
		measured := Options{Pipeline: mustParse(t, loose), Paths: []string{in}, Dir: t.TempDir(), Split: 30_000}
		old, err := Run(context.Background(), measured)
		if err != nil {
			t.Fatal(err)
		}
		fresh := Options{Pipeline: mustParse(t, other), Paths: []string{in}, Dir: t.TempDir(), Split: 30_000}
		want, err := Run(context.Background(), fresh)
		if err != nil {
			t.Fatal(err)
		}
		again := Options{Pipeline: fresh.Pipeline, Measured: measured.Dir, Dir: t.TempDir(), Split: 30_000}
		got, err := Run(context.Background(), again)
		if err != nil {
			t.Fatal(err)
		}
		if got.Report.Kept == old.Report.Kept || got.Report.Kept == 0 {
			t.Fatalf("%d documents kept before, %d now: the bounds are no test", old.Report.Kept, got.Report.Kept)
		}
		a, b := contents(t, again.Dir), contents(t, fresh.Dir)
		for _, c := range []map[string]string{a, b} {
			delete(c, "report.html") // its examples are starts of texts, as read there and as cleaned here
			c["report.json"] = withoutExampleTexts(t, c["report.json"])
		}
		filetest.Same(t, "over signals", a, b)
		if want.Report.Kept != got.Report.Kept {
			t.Errorf("%d kept, want %d", got.Report.Kept, want.Report.Kept)
		}
	}
	dir := t.TempDir()
	for i, c := range []struct{ first, then, message string }{
		{"signals: true\nstages: [normalize]", "stages: [normalize]", "has signals but no texts"},
		{"signals: true\ntexts: true\nstages: [{c4: {terminal_punctuation: false}}]", "stages: [c4]",
			"with other stages or options"},
		{"", "stages: [c4]", "holds no signals"},
	} {
		dir := filepath.Join(dir, fmt.Sprint(i))
		if c.first != "" {
			if _, err := Run(context.Background(), Options{
				Pipeline: mustParse(t, c.first), Paths: []string{in}, Dir: dir,
			}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Run(context.Background(), Options{Pipeline: mustParse(t, c.then), Measured: dir, Dir: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%q, then %q: %v, want %q", c.first, c.then, err, c.message)
		}
	}
}

func withoutExampleTexts(t *testing.T, report string) string {
	t.Helper()
	var r Report
	if err := json.Unmarshal([]byte(report), &r); err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Stages {
		for _, rule := range s.Rules {
			for i := range rule.Examples {
				rule.Examples[i].Text = ""
			}
		}
	}
	var b bytes.Buffer
	json.NewEncoder(&b).Encode(r)
	return b.String()
}
