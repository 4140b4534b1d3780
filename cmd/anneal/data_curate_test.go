package main

import (
	"os"
	"strings"
	"testing"
)

// Curate reports on a sample without writing, writes the kept documents and resumes; build reads its output.
func TestCurateThenBuild(t *testing.T) {
	w := newWorkshop(t)
	write := func(name, text string) {
		if err := os.WriteFile(w.path(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("p.yaml", "signals: true\nstages:\n  - normalize\n  - code: {lines: {min: 3}, mean_line: {max: 26}}\n")
	v := w.object(exitOK, "data", "curate", w.path("p.yaml"), w.path("text"), "--dry-run", "--sample", "7")
	if n := v["report"].(map[string]any)["documents"]; n != 7.0 {
		t.Errorf("a sample of 7 has %v documents", n)
	}
	write("text/bad.go", strings.Repeat("x", 2000))
	v = w.object(exitOK, "data", "curate", w.path("p.yaml"), w.path("text"), "--out", w.path("clean"))
	w.keys(v, "out", "report", "passes", "splits", "done", "resumed", "changed", "mb_per_second")
	r := v["report"].(map[string]any)
	if r["documents"] != 81.0 || r["kept"] != 80.0 {
		t.Errorf("kept %v of %v documents, want 80 of 81", r["kept"], r["documents"])
	}
	page, err := os.ReadFile(w.path("clean/report.html"))
	if err != nil || !strings.Contains(string(page), "longest_line") || strings.Contains(string(page), "http") {
		t.Errorf("report.html: %v, or not whole in itself", err)
	}
	if v = w.object(exitOK, "data", "curate", w.path("p.yaml"), w.path("text"), "--out",
		w.path("clean")); v["resumed"] != 1.0 {
		t.Errorf("again: %v splits were done, want 1", v["resumed"])
	}
	v = w.object(exitOK, "data", "build", w.path("clean/docs"), "--tokenizer", w.path("tok.json"), "--out",
		w.path("built"))
	if n := v["corpus"].(map[string]any)["documents"]; n != 80.0 {
		t.Errorf("build reads %v documents, want 80", n)
	}
	write("p.yaml", "stages: [kode]\n")
	if code, _, errs := anneal("data", "curate", w.path("p.yaml"), w.path("text"), "--out", w.path("clean")); code !=
		exitUsage || !strings.Contains(errs, "try code") {
		t.Errorf("exit %d: %s", code, errs)
	}
	write("p.yaml", "stages: [pii]\n")
	if code, _, errs := anneal("data", "curate", w.path("p.yaml"), w.path("text"), "--out", w.path("clean")); code !=
		exitUsage || !strings.Contains(errs, "another pipeline") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// New bounds apply to the signals of an earlier curation; a dry run says that it deduplicates the sample only; a task
// that waits too long names the tasks it waits for.
func TestCurateFromSignalsDryAndWaiting(t *testing.T) {
	w := sharedInput(t)
	write(t, w.path("loose.yaml"), "signals: true\ntexts: true\n"+
		"stages: [normalize, {gopher_quality: {stop_words: {min: 1}}}, dedup]\n")
	write(t, w.path("strict.yaml"),
		"stages: [normalize, {gopher_quality: {stop_words: {min: 1}, words: {min: 300}}}, dedup]\n")
	w.object(exitOK, "data", "curate", w.path("loose.yaml"), w.path("crawl"), "--out", w.path("loose"))
	again := w.object(exitOK, "data", "curate", w.path("strict.yaml"), "--from-signals", w.path("loose"), "--out",
		w.path("again"))
	fresh := w.object(exitOK, "data", "curate", w.path("strict.yaml"), w.path("crawl"), "--out", w.path("fresh"))
	kept := func(v map[string]any) any { return v["report"].(map[string]any)["kept"] }
	if kept(again) != kept(fresh) || kept(fresh) == 0.0 || kept(fresh) == 480.0 {
		t.Errorf("kept %v over signals, %v anew", kept(again), kept(fresh))
	}
	code, out, notes := anneal("data", "curate", w.path("strict.yaml"), w.path("crawl"), "--dry-run", "--sample", "50")
	if code != exitOK || !strings.Contains(notes, "the whole input has more duplicates") {
		t.Errorf("dry run: exit %d\n%s", code, out)
	}
	write(t, w.path("cut.jsonl.gz"), "cut off")
	code, out, errs := anneal("data", "curate", w.path("strict.yaml"), w.path("crawl"), w.path("cut.jsonl.gz"),
		"--dry-run", "--sample", "500")
	if code != exitData || strings.Contains(out, "next: ") || !strings.Contains(errs, "repair or remove the files") {
		t.Errorf("dry run with a damaged file: exit %d\n%s%s", code, out, errs)
	}
	code, _, errs = anneal("data", "curate", w.path("strict.yaml"), w.path("crawl"), "--out", w.path("half"),
		"--split", "100kB", "--task-index", "1", "--task-count", "2", "--wait", "50ms")
	if code != exitStopped || !strings.Contains(errs, "task 1 of 2\n") ||
		!strings.Contains(errs, "but these are not done: ") {
		t.Errorf("waiting: exit %d\n%s", code, errs)
	}
	if code, _, errs := anneal("data", "curate", w.path("crawl"), w.path("crawl"), "--out", w.path("none")); code !=
		exitUsage || !strings.Contains(errs, "is a directory; the first argument is the file with the stages") {
		t.Errorf("no pipeline: exit %d\n%s", code, errs)
	}
	for _, c := range [][]string{
		{}, {w.path("crawl"), "--from-signals", w.path("loose")}, {w.path("crawl"), "--memory", "1MiB"},
		{w.path("crawl"), "--sample", "5"},
	} {
		code, _,
			errs := anneal(append([]string{"data", "curate", w.path("strict.yaml"), "--out", w.path("none")}, c...)...)
		if code != exitUsage || !strings.Contains(errs, "try ") {
			t.Errorf("%v: exit %d\n%s", c, code, errs)
		}
	}
}
