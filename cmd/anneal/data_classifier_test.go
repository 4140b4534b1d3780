package main

import (
	"os"
	"strings"
	"testing"
)

// A classifier is trained, measured, used on documents, and used in a pipeline.
func TestClassifierFromTrainingToPipeline(t *testing.T) {
	w := newWorkshop(t)
	if err := os.Mkdir(w.path("prose"), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(w.path(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 40 {
		write("prose/"+string(rune('a'+i%26))+string(rune('a'+i/26))+".md",
			strings.Repeat("Here stand words of another kind, and more of them. ", 1+i))
	}
	v := w.object(exitOK, "data", "classifier", "train", "--label", "code="+w.path("text")+"/*.go", "--label",
		"prose="+w.path("prose"), "--out", w.path("kind.bin"), "--dim", "4", "--lr", "1")
	w.keys(v, "out", "model", "examples", "bytes", "held_out", "mb_per_second")
	if a := v["held_out"].(map[string]any)["accuracy"]; a != 1.0 {
		t.Errorf("held out: %v right", a)
	}
	v = w.object(exitOK, "data", "classifier", "eval", w.path("kind.bin"), "--label", "prose="+w.path("text"))
	if e := v["evaluation"].(map[string]any); e["accuracy"] != 0.0 || e["examples"] != 80.0 {
		t.Errorf("code that is called prose: %v", e)
	}
	_, out, _ := anneal("data", "classifier", "eval", w.path("kind.bin"), "--label", "prose="+w.path("text"))
	for label, want := range map[string]string{"prose": " 80 – 0.0000", "code": " 0 0.0000 –"} {
		if text := strings.Join(strings.Fields(out), " "); !strings.Contains(text, label+want) {
			t.Errorf("no line %q in\n%s", label+want, out)
		}
	}
	v = w.object(exitOK, "data", "classifier", "predict", w.path("kind.bin"), w.path("prose"), w.path("text"),
		"--limit", "3")
	if n := len(v["documents"].([]any)); n != 3 || v["counts"].(map[string]any)["prose"] != 40.0 ||
		v["counts"].(map[string]any)["code"] != 80.0 {
		t.Errorf("%d documents shown, counts %v", n, v["counts"])
	}
	w.object(exitOK, "data", "classifier", "train", "--label", "code="+w.path("text")+"/*.go", "--label",
		"prose="+w.path("prose"), "--out", w.path("large.bin"), "--dim", "4", "--lr", "1", "--minn", "2", "--maxn", "3",
		"--bucket", "1000")
	v = w.object(exitOK, "data", "classifier", "quantize", w.path("large.bin"), "--out", w.path("small.ftz"),
		"--cutoff", "300")
	if v["bytes"].(float64) > v["bytes_before"].(float64)*0.6 {
		t.Errorf("%v bytes became %v", v["bytes_before"], v["bytes"])
	}
	v = w.object(exitOK, "data", "classifier", "eval", w.path("small.ftz"), "--label", "prose="+w.path("prose"))
	if e := v["evaluation"].(map[string]any); e["accuracy"] != 1.0 {
		t.Errorf("quantised: %v", e)
	}
	write("p.yaml", "stages:\n  - quality: {model: kind.bin, label: prose}\n")
	v = w.object(exitOK, "data", "curate", w.path("p.yaml"), w.path("text"), w.path("prose"), "--out", w.path("clean"))
	if r := v["report"].(map[string]any); r["kept"] != 40.0 {
		t.Errorf("kept %v documents, want the 40 of prose", r["kept"])
	}
	if code, _, errs := anneal("data", "classifier", "train", "--label", "good="+w.path("prose"), "--out",
		w.path("q.bin"), "--word-ngrams", "2", "--bucket", "2000000000", "--dim", "65536"); code != exitResources {
		t.Errorf("vectors of 477 TiB: exit %d, %s", code, errs)
	}
	for want, args := range map[string][]string{
		"try --label good=DIR":      {"train", "--out", w.path("q.bin")},
		"has no path":               {"train", "--label", "good", "--out", w.path("q.bin")},
		"is not a valid label":      {"train", "--label", "very good=x", "--out", w.path("q.bin")},
		"is a directory":            {"train", "--label", "good=x", "--out", w.path("text")},
		"not a share":               {"train", "--label", "good=x", "--out", w.path("q.bin"), "--holdout", "1"},
		"dim = 0":                   {"train", "--label", "good=x", "--out", w.path("q.bin"), "--dim", "0"},
		"two labels":                {"train", "--label", "good=" + w.path("prose"), "--out", w.path("q.bin")},
		"is the file that is read":  {"quantize", w.path("kind.bin"), "--out", w.path("text/../kind.bin")},
		"--top 0":                   {"predict", w.path("kind.bin"), w.path("prose"), "--top", "0"},
		"another format":            {"eval", w.path("p.yaml"), "--label", "good=" + w.path("prose")},
		"no such file or directory": {"predict", w.path("none.bin"), w.path("prose")},
	} {
		if code, _, errs := anneal(append([]string{"data", "classifier"}, args...)...); code != exitUsage &&
			code != exitData || !strings.Contains(errs, want) {
			t.Errorf("%v: exit %d, %s", args, code, errs)
		}
	}
}
