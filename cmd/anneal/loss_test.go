package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"anneal/corpus"
)

// linesOfText are lines of JSON with a text and other fields.
func linesOfText(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "{\"id\":%d, \"text\":\"document %d of the river, %s and the garden\",\"score\":1.50}\n",
			i, i, strings.Repeat("stone ", i%7))
	}
	return b.String()
}

func gz(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, s)
	w.Close()
	return b.String()
}

// A truncated file fails every command that builds a corpus from it; the output holds the rest of the text and is
// marked. A share of broken lines also fails, unless --max-rejects allows it. Repeated curation fails again until the
// file is repaired.
func TestLostTextFailsTheCommand(t *testing.T) {
	w := newWorkshop(t)
	os.Mkdir(w.path("in"), 0o777)
	packed := gz(linesOfText(3000))
	write(t, w.path("in/a.jsonl.gz"), packed[:len(packed)/2])
	write(t, w.path("in/b.jsonl"), linesOfText(500))
	write(t, w.path("p.yaml"), "stages: [normalize]\n")
	commands := map[string][]string{
		"curate": {"data", "curate", w.path("p.yaml"), w.path("in"), "--out", w.path("curated")},
		"dedup":  {"data", "dedup", w.path("in"), "--out", w.path("deduped")},
		"build":  {"data", "build", w.path("in"), "--tokenizer", w.path("tok.json"), "--out", w.path("built")},
		"train":  {"tokenizer", "train", w.path("in"), "--vocab", "300", "--out", w.path("t.json")},
	}
	marked := map[string]string{
		"curate": "curated/report.json", "dedup": "deduped/report.json", "build": "built/dataset.json",
	}
	lost := func(name string) bool {
		b, err := os.ReadFile(w.path(marked[name]))
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Contains(b, []byte(`"lost"`)) && bytes.Contains(b, []byte("a.jsonl.gz"))
	}
	for name, args := range commands {
		v := w.object(exitData, append(slices.Clone(args), "--max-rejects", "100%")...)
		w.keys(v, "out", "mb_per_second", "exit_code")
		if s := fmt.Sprint(v["error"]); !strings.Contains(s, "1 file could not be read to the end: at least 1 "+
			"document and ") || !strings.Contains(s, filepath.Join("in", "a.jsonl.gz")+": damaged or cut off") {
			t.Errorf("%s: %s", name, s)
		}
		if marked[name] != "" && !lost(name) {
			t.Errorf("%s: %s is not marked", name, marked[name])
		}
	}
	if code, out, errs := anneal(append(slices.Clone(commands["build"]), "--replace")...); code != exitData ||
		strings.Contains(out, "next:") {
		t.Errorf("build of damaged files: exit %d, and a next command before the error\n%s%s", code, out, errs)
	}
	if v := w.object(exitData, commands["curate"]...); v["resumed"] != v["splits"] ||
		v["report"].(map[string]any)["kept"].(float64) < 600 {
		t.Errorf("again: %v of %v splits are taken over, %v kept",
			v["resumed"], v["splits"], v["report"].(map[string]any)["kept"])
	}
	if code, _, errs := anneal(commands["dedup"]...); code != exitData ||
		!strings.Contains(errs, "holds files already") {
		t.Errorf("dedup again: exit %d\n%s", code, errs)
	}
	write(t, w.path("in/a.jsonl.gz"), packed)
	os.RemoveAll(w.path("deduped"))
	for name, args := range commands {
		if name == "build" {
			args = append(args, "--replace")
		}
		w.object(exitOK, append(slices.Clone(args), "--strict")...)
		if marked[name] != "" && lost(name) {
			t.Errorf("%s: %s is marked still", name, marked[name])
		}
	}

	write(t, w.path("broken.jsonl"), linesOfText(199)+"{broken\n")
	for flags, code := range map[string]int{
		"": exitData, "--strict": exitData, "--max-rejects 0.4%": exitData, "--max-rejects 0.6%": exitOK,
		"--max-rejects 0.6% --strict": exitData,
	} {
		args := append([]string{"data", "build", w.path("broken.jsonl"), "--tokenizer", w.path("tok.json"), "--out",
			w.path("built"), "--replace"}, strings.Fields(flags)...)
		if got, _, errs := anneal(args...); got != code ||
			code == exitData && !strings.Contains(errs, "1 of 200 documents (0.5 %)") {
			t.Errorf("%s: exit %d, want %d\n%s", flags, got, code, errs)
		}
	}
	for _, share := range []string{"0.1", "x%", "-1%", "101%"} {
		if code, _, errs := anneal(append(slices.Clone(commands["train"]), "--max-rejects="+share)...); code !=
			exitUsage || !strings.Contains(errs, "try 0.1%") {
			t.Errorf("--max-rejects %s: exit %d\n%s", share, code, errs)
		}
	}
}

// Lost text also fails the training of a classifier, and init, which still writes its config.
func TestLostTextFailsInitAndClassifiers(t *testing.T) {
	w := workshop{t, t.TempDir()}
	os.Mkdir(w.path("in"), 0o777)
	packed := gz(linesOfText(300))
	write(t, w.path("in/a.jsonl.gz"), packed[:len(packed)/2])
	write(t, w.path("in/b.jsonl"), linesOfText(500))
	write(t, w.path("good.jsonl"), linesOfText(50))
	for _, args := range [][]string{
		{"init", w.path("mine"), "--data", w.path("in"), "--vocab", "300", "--budget", "20s", "--threads", "1"},
		{"data", "classifier", "train", "--label", "bad=" + w.path("in"), "--label", "good=" + w.path("good.jsonl"),
			"--dim", "4", "--out", w.path("q.bin")},
	} {
		v := w.object(exitData, args...)
		w.keys(v, "seconds", "exit_code")
		if s := fmt.Sprint(v["error"]); !strings.Contains(s, filepath.Join("in", "a.jsonl.gz")+": damaged or cut off") {
			t.Errorf("%s: %s", args[0], s)
		}
	}
	for _, made := range []string{"mine/config.yaml", "q.bin"} {
		if _, err := os.Stat(w.path(made)); err != nil {
			t.Error(err)
		}
	}
}

// A task that has finished its part fails at once for a damaged file; only the last task knows the share of broken
// lines.
func TestLossInATask(t *testing.T) {
	w := workshop{t, t.TempDir()}
	os.Mkdir(w.path("in"), 0o777)
	write(t, w.path("p.yaml"), "stages: [normalize]\n")
	write(t, w.path("in/a.jsonl"), "{broken\n"+linesOfText(100))
	write(t, w.path("in/b.jsonl"), linesOfText(300))
	task := func(i string) []string {
		return []string{
			"data", "curate", w.path("p.yaml"), w.path("in"), "--out", w.path("out"), "--split", "5kB", "--task-count",
			"2", "--task-index", i,
		}
	}
	w.object(exitOK, task("0")...)
	w.object(exitData, task("1")...)
	packed := gz(linesOfText(3000))
	write(t, w.path("in/a.jsonl.gz"), packed[:len(packed)/2])
	os.RemoveAll(w.path("out"))
	codes := map[int]int{}
	for _, i := range []string{"0", "1"} {
		code, _, _ := anneal(task(i)...)
		codes[code]++
	}
	if codes[exitData] == 0 || codes[exitOK]+codes[exitData] != 2 {
		t.Errorf("exit codes %v", codes)
	}
}

// Curate and dedup keep the fields of documents unchanged.
func TestFieldsSurviveCurateAndDedup(t *testing.T) {
	w := workshop{t, t.TempDir()}
	write(t, w.path("in.jsonl"), linesOfText(50))
	write(t, w.path("p.yaml"), "stages: [normalize, {dedup: {near: false}}, pii]\n")
	w.object(exitOK, "data", "curate", w.path("p.yaml"), w.path("in.jsonl"), "--out", w.path("curated"))
	w.object(exitOK, "data", "dedup", w.path("curated/docs"), "--out", w.path("deduped"), "--no-near")
	r, err := corpus.Open([]string{w.path("deduped/docs")}, corpus.Options{Fields: true})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for d, err := range r.Documents() {
		if want := fmt.Sprintf(`"id":%d,"score":1.50`, n); err != nil || string(d.Fields) != want {
			t.Fatalf("document %d has the fields %s, want %s; %v", n, d.Fields, want, err)
		}
		var place struct {
			From struct{ From struct{ Source string } }
		}
		if err := json.Unmarshal(append(append([]byte("{"), d.Moved...), '}'), &place); err != nil ||
			place.From.From.Source != w.path("in.jsonl") {
			t.Fatalf("document %d comes from %s, %v", n, d.Moved, err)
		}
		n++
	}
	if n != 50 {
		t.Errorf("%d documents of 50", n)
	}
}

// A pipeline that drops nearly everything warns which rule does, and which pipeline suits; one that keeps its input
// does not warn.
func TestCurateTellsThatLittleIsKept(t *testing.T) {
	w := newWorkshop(t)
	write(t, w.path("web.yaml"), "stages: [normalize, gopher_quality]\n")
	write(t, w.path("code.yaml"), "stages: [normalize, code]\n")
	for pipeline, told := range map[string]bool{"web.yaml": true, "code.yaml": false} {
		code, out, errs := anneal("data", "curate", w.path(pipeline), w.path("text"), "--out", w.path("of "+pipeline))
		if code != exitOK || strings.Contains(errs, "0 % of the documents") != told ||
			strings.Contains(errs, "examples/curate/notes.yaml") != told ||
			told && !strings.Contains(errs, "gopher_quality.") {
			t.Errorf("%s: exit %d\n%s%s", pipeline, code, out, errs)
		}
		if want := "next: anneal tokenizer train --vocab 8192 --out tok.json '" + w.path("of "+pipeline) +
			"/docs'\n"; !strings.HasSuffix(out, want) || !strings.Contains(out, " in ") {
			t.Errorf("%s ends with\n%s", pipeline, out)
		}
	}
}
