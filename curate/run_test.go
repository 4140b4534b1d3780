package curate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"anneal/corpus"
	"anneal/internal/fileio"
	"anneal/internal/filetest"

	"github.com/klauspost/compress/zstd"
)

const allStages = "signals: true\nstages: [normalize, gopher_repetition, {gopher_quality: {words: {min: 20}}}, " +
	"{c4: {terminal_punctuation: false}}, fineweb, pii]\n"

func mustParse(t testing.TB, text string) *Pipeline {
	t.Helper()
	p, err := Parse([]byte(text), "p.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// writeInput writes files of JSON lines that the stages treat in all ways, and one that is broken.
func writeInput(t testing.TB, dir string, files int) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the be to of and that have with a in river stone letter garden window paper morning " +
		"quiet water table")
	for i := range files {
		var b strings.Builder
		for j := range 30 {
			var text strings.Builder
			for range 1 + r.IntN(20) {
				for range 4 + r.IntN(15) {
					text.WriteString(words[r.IntN(len(words)-r.IntN(10))] + " ")
				}
				text.WriteString([]string{"end.\n", "end.\n", "mail a@b.org.\r\n", "x\n", "{\n",
					"uses cookies.\n"}[min(r.IntN(12), r.IntN(12), 5)])
			}
			b.WriteString(lineWithFields(i, j, text.String()))
		}
		if i%3 == 1 {
			b.WriteString("{broken\n")
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.jsonl", i)), []byte(b.String()),
			0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// lineWithFields is a line of JSON with other fields on both sides of the text, for most documents.
func lineWithFields(i, j int, text string) string {
	quoted, _ := json.Marshal(text)
	switch j % 4 {
	case 0:
		return fmt.Sprintf("{\"text\":%s}\n", quoted)
	case 1:
		return fmt.Sprintf("{\"anneal\": [%d], \"text\":%s}\n", j, quoted)
	}
	return fmt.Sprintf("{\"id\": \"%d-%d\",\"n\":1e%d,\"text\":%s,\"meta\":{\"é\":[ "+
		"%d,null],\"raw\":\"\\u00e9\xff\"}}\n", i, j, j, quoted, j)
}

// contents are all files of a directory but the journals, whose order is that of the work.
func contents(t testing.TB, dir string) map[string]string {
	return filetest.Contents(t, dir, "journal")
}

var errStopped = errors.New("stopped by the test")

// One, two and seven workers, four tasks, and runs that are stopped after every split and given again, leave the same
// files.
func TestOutputIsThatOfTheInputAlone(t *testing.T) {
	in := t.TempDir()
	writeInput(t, in, 12)
	o := Options{Split: 10_000, Pipeline: mustParse(t, allStages), Paths: []string{in}}
	run := func(o Options) (Outcome, error) { return Run(context.Background(), o) }

	o.Dir, o.Workers = filepath.Join(t.TempDir(), "one"), 1
	first, err := run(o)
	if err != nil {
		t.Fatal(err)
	}
	if first.Splits < 5 || first.Report.Kept == 0 || first.Report.Kept == first.Report.Documents ||
		first.Report.Input.Rejected() != 4 {
		t.Fatalf("%d splits, %d of %d documents kept, %d rejects: the input is no test",
			first.Splits, first.Report.Kept, first.Report.Documents, first.Report.Input.Rejected())
	}
	want := contents(t, o.Dir)
	for _, workers := range []int{2, 7} {
		o.Dir, o.Workers = t.TempDir(), workers
		if _, err := run(o); err != nil {
			t.Fatal(err)
		}
		filetest.Same(t, fmt.Sprint(workers, " workers"), contents(t, o.Dir), want)
	}

	o.Dir, o.Workers = t.TempDir(), 2
	stops := 0
	var mu sync.Mutex
	times := map[place]int{} // that a split was done
	for {
		o.committed = func(p place) error {
			mu.Lock()
			defer mu.Unlock()
			times[p]++
			return errStopped
		}
		_, err := run(o)
		if err == nil {
			break
		}
		if !errors.Is(err, errStopped) || stops > first.Splits {
			t.Fatalf("after %d stops: %v", stops, err)
		}
		stops++
		cutJournal(t, o.Dir, stops)
	}
	o.committed = nil
	filetest.Same(t, fmt.Sprint(stops, " stops"), contents(t, o.Dir), want)
	for split, n := range times {
		if n != 1 {
			t.Errorf("split %v was done %d times over %d stops", split, n, stops)
		}
	}

	o.Dir = t.TempDir()
	for _, task := range []int{3, 1, 0, 2} {
		o.TaskIndex, o.TaskCount = task, 4
		if task == 1 { // killed once
			o.committed = func(place) error { return errStopped }
			if _, err := run(o); !errors.Is(err, errStopped) {
				t.Fatal(err)
			}
			o.committed = nil
		}
		if _, err := run(o); err != nil {
			t.Fatal(err)
		}
	}
	filetest.Same(t, "four tasks", contents(t, o.Dir), want)
}

// cutJournal tears a line into the journal at some of the stops, as a killed process does, and leaves a file
// unfinished.
func cutJournal(t *testing.T, dir string, stop int) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "journal.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
	if err == nil && stop%2 == 1 {
		_, err = f.WriteString(`{"split":0,"inp`)
	}
	if err == nil {
		err = errors.Join(f.Close(), os.WriteFile(
			filepath.Join(dir, "docs", fmt.Sprintf(".00000.jsonl.zst.tmp-%d", stop)), []byte("half"), 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A file that has changed since its split was done is done again, and nothing else is; another pipeline is refused.
func TestChangedInputIsNoticed(t *testing.T) {
	in := t.TempDir()
	writeInput(t, in, 4)
	o := Options{Split: 18_000, Pipeline: mustParse(t, allStages), Paths: []string{in}, Dir: t.TempDir()}
	if _, err := Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(in, "02.jsonl")
	if err := os.WriteFile(name, []byte(`{"text":"short"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := Run(context.Background(), o)
	if err != nil || out.Changed != 1 || out.Resumed != 3 || out.Report.Documents != 91 {
		t.Errorf("%+v %v: want one of four splits done again", out, err)
	}
	fresh := o
	fresh.Dir = t.TempDir()
	if _, err := Run(context.Background(), fresh); err != nil {
		t.Fatal(err)
	}
	filetest.Same(t, "after the change", contents(t, o.Dir), contents(t, fresh.Dir))

	if err := os.Remove(filepath.Join(o.Dir, "docs", "00001.jsonl.zst")); err != nil {
		t.Fatal(err)
	}
	if out, err := Run(context.Background(), o); err != nil || out.Resumed != 3 {
		t.Errorf("with a file gone %d splits are taken over, want 3; %v", out.Resumed, err)
	}
	filetest.Same(t, "after a loss", contents(t, o.Dir), contents(t, fresh.Dir))

	o.Pipeline = mustParse(t, "stages: [normalize]")
	if _, err := Run(context.Background(), o); !errors.Is(err, ErrOtherPipeline) {
		t.Errorf("another pipeline: %v", err)
	}
}

// The documents that come out are those that no stage drops, in order, each with the text the stages left.
func TestKeptDocumentsAreThoseNoStageDrops(t *testing.T) {
	in, dir := t.TempDir(), t.TempDir()
	writeInput(t, in, 3)
	p := mustParse(t, allStages)
	out, err := Run(context.Background(), Options{Pipeline: p, Paths: []string{in}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	r, err := corpus.Open([]string{in}, corpus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.KeepFields(true)
	var want, fields []string
	stages := p.NewStages()
	for d, err := range r.Documents() {
		if err != nil {
			t.Fatal(err)
		}
		doc := Doc{Text: d.Text}
		drop := false
		for _, f := range stages {
			drop = drop || f.Apply(&doc).Drop
		}
		if !drop {
			want = append(want, string(doc.Text))
			fields = append(fields, strings.ReplaceAll(string(d.Fields), "\xff", "\ufffd"))
		}
	}
	kept, err := corpus.Open([]string{filepath.Join(dir, "docs")}, corpus.Options{Fields: true})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for d, err := range kept.Documents() {
		if err != nil {
			t.Fatal(err)
		}
		if n >= len(want) || string(d.Text) != want[n] || string(d.Fields) != fields[n] {
			t.Fatalf("document %d is %q with %q", n, d.Text, d.Fields)
		}
		n++
	}
	if n != len(want) || out.Report.Kept != n {
		t.Errorf("%d documents, report says %d, want %d", n, out.Report.Kept, len(want))
	}
}

// A dry run looks at the sample and leaves no trace.
func TestDryRunWritesNothing(t *testing.T) {
	in, dir := t.TempDir(), t.TempDir()
	writeInput(t, in, 4)
	out, err := Run(context.Background(), Options{
		Pipeline: mustParse(t, allStages), Paths: []string{in}, Dir: dir, Sample: 17,
	})
	if err != nil || out.Report.Documents != 17 || len(contents(t, dir)) != 0 {
		t.Errorf("%d documents, %d files, %v", out.Report.Documents, len(contents(t, dir)), err)
	}
}

// The signals name each document, what dropped it and its numbers; the report's examples are those with the smallest
// draws.
func TestSignalsAndExamplesAgree(t *testing.T) {
	in, dir := t.TempDir(), t.TempDir()
	writeInput(t, in, 6)
	out, err := Run(context.Background(), Options{Pipeline: mustParse(t, allStages), Paths: []string{in}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "signals", "00000.jsonl.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	draws := map[string][]uint64{}
	n := 0
	for d := json.NewDecoder(z); ; n++ {
		var line struct {
			Key       [3]int
			DroppedBy string `json:"dropped_by"`
			Signals   map[string]float64
		}
		if err := d.Decode(&line); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if len(line.Signals) != 1+13+8+4+4+2 {
			t.Fatalf("%v has %d signals", line.Key, len(line.Signals))
		}
		draws[line.DroppedBy] = append(draws[line.DroppedBy],
			placeHash(line.DroppedBy, Key{line.Key[0], line.Key[1], line.Key[2]}))
	}
	if n != out.Report.Documents || len(draws[""]) != out.Report.Kept {
		t.Errorf("signals of %d documents, %d kept; the report has %d and %d",
			n, len(draws[""]), out.Report.Documents, out.Report.Kept)
	}
	for _, s := range out.Report.Stages {
		for _, r := range s.Rules {
			want := draws[s.Name+"."+r.Name]
			slices.Sort(want)
			if r.Documents != len(want) {
				t.Errorf("%s.%s dropped %d documents, signals say %d", s.Name, r.Name, r.Documents, len(want))
			}
			for i, e := range r.Examples {
				if len(r.Examples) != min(len(want), examples) || e.Draw != want[i] {
					t.Errorf("%s.%s: example %d of %d has draw %d", s.Name, r.Name, i, len(r.Examples), e.Draw)
				}
			}
		}
	}
}

// Files that no curation has made are never removed: a directory without a journal is refused, and in one of a
// curation only shards go that a journal names.
func TestForeignFilesStay(t *testing.T) {
	in, dir := t.TempDir(), t.TempDir()
	writeInput(t, in, 2)
	o := Options{Pipeline: mustParse(t, allStages), Paths: []string{in}, Dir: dir}
	foreign := []string{"docs/notes.txt", "docs/2024.jsonl.zst", "docs/+1.jsonl.zst", "docs/.2024.jsonl.zst.tmp-1",
		"rejects/2024.jsonl.zst"}
	write := func() {
		for _, name := range foreign {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777),
				os.WriteFile(path, []byte("mine"), 0o666)); err != nil {
				t.Fatal(err)
			}
		}
	}
	write()
	if _, err := Run(context.Background(), o); !errors.Is(err, ErrForeign) {
		t.Errorf("a directory with files of others: %v", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := Run(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		write()
	}
	o.Paths = []string{filepath.Join(in, "00.jsonl")}
	if _, err := Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	for _, name := range foreign {
		if b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))); string(b) != "mine" {
			t.Errorf("%s is gone: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "docs", "00001.jsonl.zst")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a shard of no split is left: %v", err)
	}
}

// The name of the directory is no pattern: work is resumed in it, and its texts are read again, as in any other.
func TestDirectoriesMayHaveNamesLikePatterns(t *testing.T) {
	in, dir := t.TempDir(), filepath.Join(t.TempDir(), "web[1]")
	writeInput(t, in, 2)
	p := mustParse(t, "signals: true\ntexts: true\nstages: [normalize, {dedup: {}}]\n")
	for n := range 2 {
		out, err := Run(context.Background(), Options{Pipeline: p, Paths: []string{in}, Dir: dir})
		if err != nil || out.Done != out.Splits || out.Resumed != n*out.Splits {
			t.Fatalf("run %d: %d of %d splits done, %d before: %v", n, out.Done, out.Splits, out.Resumed, err)
		}
	}
	if _, err := Run(context.Background(), Options{Pipeline: p, Measured: dir, Dir: t.TempDir()}); err != nil {
		t.Error(err)
	}
}

// The name of an unfinished file holds that of the finished one; any other name is that of a finished file.
func TestFinishedNames(t *testing.T) {
	for name, want := range map[string]string{
		"00000.jsonl.zst": "", "00000.jsonl.zst.tmp-1": "", ".00000.jsonl.zst": "", ".00000.jsonl.zst.tmp-": "", "": "",
		".00000.jsonl.zst.tmp-12": "00000.jsonl.zst",
	} {
		if got, begun := finishedName(name); begun != (want != "") || begun && got != want || !begun && got != name {
			t.Errorf("finishedName(%q) = %q, %v", name, got, begun)
		}
	}
}

// One process at a time writes to a journal.
func TestSecondProcessIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no locks there")
	}
	in := t.TempDir()
	writeInput(t, in, 2)
	o := Options{Pipeline: mustParse(t, allStages), Paths: []string{in}, Dir: t.TempDir()}
	second := o
	var errs []error
	o.committed = func(place) error {
		_, err := Run(context.Background(), second)
		errs = append(errs, err)
		return nil
	}
	o.Workers = 1
	if _, err := Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if len(errs) != 1 || !errors.Is(errs[0], fileio.ErrLocked) {
		t.Errorf("a second process at work: %v", errs)
	}
	if _, err := Run(context.Background(), second); err != nil {
		t.Errorf("after the first has ended: %v", err)
	}
}

func TestRunNeedsAPipeline(t *testing.T) {
	_, err := Run(t.Context(), Options{Paths: []string{"run.go"}, Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "read one with Parse") {
		t.Errorf("%v", err)
	}
}
