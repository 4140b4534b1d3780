package main

import (
	"os"
	"strings"
	"testing"
)

// Curate reports on a sample without writing, writes the documents it keeps, goes on where it was, and build reads them.
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
	w.keys(v, "out", "report", "splits", "done", "resumed", "changed", "mb_per_second")
	r := v["report"].(map[string]any)
	if r["documents"] != 81.0 || r["kept"] != 80.0 {
		t.Errorf("kept %v of %v documents, want 80 of 81", r["kept"], r["documents"])
	}
	page, err := os.ReadFile(w.path("clean/report.html"))
	if err != nil || !strings.Contains(string(page), "longest_line") || strings.Contains(string(page), "http") {
		t.Errorf("report.html: %v, or not whole in itself", err)
	}
	if v = w.object(exitOK, "data", "curate", w.path("p.yaml"), w.path("text"), "--out", w.path("clean")); v["resumed"] != 1.0 {
		t.Errorf("again: %v splits were done, want 1", v["resumed"])
	}
	v = w.object(exitOK, "data", "build", w.path("clean/docs"), "--tokenizer", w.path("tok.json"), "--out", w.path("built"))
	if n := v["corpus"].(map[string]any)["documents"]; n != 80.0 {
		t.Errorf("build reads %v documents, want 80", n)
	}
	write("p.yaml", "stages: [kode]\n")
	if code, _, errs := anneal("data", "curate", w.path("p.yaml"), w.path("text"), "--out", w.path("clean")); code != exitUsage || !strings.Contains(errs, "try code") {
		t.Errorf("exit %d: %s", code, errs)
	}
	write("p.yaml", "stages: [pii]\n")
	if code, _, errs := anneal("data", "curate", w.path("p.yaml"), w.path("text"), "--out", w.path("clean")); code != exitUsage || !strings.Contains(errs, "another pipeline") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
