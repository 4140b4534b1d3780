package curate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"anneal/internal/filetest"
)

// different returns lines of n documents that no other word has.
func different(word string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"text\":\"%s%c%c and other words of its own kind %s\"}\n", word, 'a'+i/26, 'a'+i%26, word)
	}
	return b.String()
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Signals are those of the last finished run, whether its input has more or fewer splits than the one before, and a
// run that was stopped has none.
func TestSignalsFollowTheInput(t *testing.T) {
	in, dir := t.TempDir(), t.TempDir()
	o := Options{Split: 1000, Pipeline: mustParse(t, "signals: true\ntexts: true\nstages: [normalize]"),
		Paths: []string{in}, Dir: dir, Workers: 1}
	over := Options{Pipeline: o.Pipeline, Measured: dir, Workers: 1}
	for _, c := range []struct{ a, b, want int }{{20, 0, 20}, {20, 30, 50}, {20, 0, 20}} {
		writeFiles(t, in, map[string]string{"a.jsonl": different("alpha", c.a), "b.jsonl": different("beta", c.b)})
		stopped := o
		stopped.committed = func(place) error { return errStopped }
		if _, err := Run(context.Background(), stopped); err == nil {
			t.Fatal("the run was not stopped")
		}
		over.Dir = t.TempDir()
		if _, err := Run(context.Background(), over); err == nil || !strings.Contains(err.Error(), "finish it first") {
			t.Errorf("signals of a stopped run: %v", err)
		}
		if _, err := Run(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		over.Dir = t.TempDir()
		out, err := Run(context.Background(), over)
		if err != nil || out.Report.Documents != c.want {
			t.Errorf("signals of %d documents, want %d; %v", out.Report.Documents, c.want, err)
		}
	}
}

// Numbers of documents in DIR/clusters are those of a fresh run, also where a split's own documents are the same.
func TestClustersCountChangedSplits(t *testing.T) {
	in := t.TempDir()
	first := different("alpha", 20)
	line, _, _ := strings.Cut(first, "\n")
	files := map[string]string{"a.jsonl": first, "b.jsonl": different("beta", 10) + line + "\n"}
	o := Options{Split: 1500, Pipeline: mustParse(t, "stages: [normalize, {dedup: {near: false}}]"),
		Paths: []string{in}, Dir: t.TempDir(), Workers: 1}
	for range 2 {
		writeFiles(t, in, files)
		if _, err := Run(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		files["a.jsonl"] = first + different("delta", 3)
	}
	want := contents(t, o.Dir)
	o.Dir = t.TempDir()
	if _, err := Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	filetest.Same(t, "a fresh run", contents(t, o.Dir), want)
}

// What the listing of the input left out and lost is known over signals. Lists of rejects go with their lines.
func TestListingIsKnownOverSignals(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no symbolic links there")
	}
	in := t.TempDir()
	writeFiles(t, in, map[string]string{"a.jsonl": different("alpha", 9) + "{broken\n", ".hidden": "x"})
	if err := os.Symlink("loop", filepath.Join(in, "loop")); err != nil {
		t.Fatal(err)
	}
	o := Options{Pipeline: mustParse(t, "signals: true\ntexts: true\nstages: [normalize]"), Paths: []string{in},
		Dir: t.TempDir()}
	first, err := Run(context.Background(), o)
	if err != nil || first.Report.Input.Lost == nil || first.Report.Input.Lost.FileCount != 1 {
		t.Fatalf("lost %+v, want one file; %v", first.Report.Input.Lost, err)
	}
	over := Options{Pipeline: o.Pipeline, Measured: o.Dir, Dir: t.TempDir()}
	again, err := Run(context.Background(), over)
	if err != nil || again.Report.Input.String() != first.Report.Input.String() {
		t.Errorf("over signals: %s\nwant %s\n%v", again.Report.Input, first.Report.Input, err)
	}
	list, want := contents(t, over.Dir)["rejects.jsonl"], contents(t, o.Dir)["rejects.jsonl"]
	if list != want || strings.Count(list, "\n") != 3 {
		t.Errorf("over signals these are listed:\n%swant\n%s", list, want)
	}
	writeFiles(t, in, map[string]string{"a.jsonl": different("alpha", 9)})
	if _, err := Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(o.Dir, rejectsDir)); err == nil {
		t.Error("the line is repaired, but its reject is still listed")
	}
}

// While a file is lost, the command fails and is given again: it then does only what changed, also before a comparison.
func TestPassesAreKeptWhileAFileIsLost(t *testing.T) {
	in := t.TempDir()
	writeFiles(t, in, map[string]string{"a.jsonl": different("alpha", 20), "b.jsonl.gz": "damaged"})
	seen := map[place]bool{}
	o := Options{Split: 1000, Pipeline: mustParse(t, "stages: [normalize, dedup]"), Paths: []string{in},
		Dir: t.TempDir(), Workers: 1, committed: func(p place) error { seen[p] = true; return nil }}
	out, err := Run(context.Background(), o)
	if err != nil || out.Report.Input.Lost == nil || out.Splits != 2*2 {
		t.Fatalf("lost %+v of %d splits, want one file of 4; %v", out.Report.Input.Lost, out.Splits, err)
	}
	if err := os.Remove(filepath.Join(in, "b.jsonl.gz")); err != nil {
		t.Fatal(err)
	}
	writeFiles(t, in, map[string]string{"b.jsonl": different("beta", 5)})
	clear(seen)
	if _, err := Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	for p := range seen {
		if p.step != 1 && p.split != 1 {
			t.Errorf("split %d of step %d was done again", p.split, p.step)
		}
	}
	if _, err := os.Stat(filepath.Join(o.Dir, betweenDir)); err == nil || len(seen) != 3 {
		t.Errorf("done again: %v; or the files between passes are left", seen)
	}
}

// Examples show a document as it came, also after repeated lines were cut out of it.
func TestExamplesAreNotCut(t *testing.T) {
	in := t.TempDir()
	second := `the shared menu line of the whole site\nSECOND PAGE: 42`
	writeFiles(t, in, map[string]string{"a.jsonl": `{"text":"the shared menu line of the whole site"}` + "\n" +
		`{"text":"` + second + `"}` + "\n"})
	o := Options{Pipeline: mustParse(t, "stages: [{dedup: {exact: line, near: false}}, "+
		"{gopher_quality: {words: {min: 5}, word_length: {min: 0}, stop_words: {min: 0}, alpha_words: {min: 0}}}]"),
		Paths: []string{in}, Dir: t.TempDir()}
	out, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(second, `\n`, "\n")
	if got := out.Report.Stages[1].Rules[0].Examples; len(got) != 1 || got[0].Text != want {
		t.Errorf("examples %+v, want %q", got, want)
	}
}
