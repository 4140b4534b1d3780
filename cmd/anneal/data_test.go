package main

import (
	"os"
	"strings"
	"testing"

	"anneal/config"
	"anneal/dataset"
	"anneal/internal/units"
)

// A data set that is wholly held out can be evaluated on, inspected and exported; training on it is an error that says
// that it is held out.
func TestAWhollyHeldOutDataSet(t *testing.T) {
	w := newWorkshop(t)
	held := w.path("held")
	v := w.object(exitOK, "data", "build", "--tokenizer", w.path("tok.json"), "--val", "1", "--out", held,
		w.path("text"))
	w.keys(v, "out", "seconds", "remarks", "end_of_text")
	if v["train"].(map[string]any)["tokens"] != 0.0 || v["val"].(map[string]any)["documents"] != 80.0 {
		t.Errorf("built %v", v)
	}
	w.object(exitOK, "data", "verify", held)
	v = w.object(exitOK, "data", "inspect", held, "--context", "32")
	if v["lengths_of"] != "val" || v["bytes_per_token"].(float64) < 1 ||
		len(v["lengths"].(map[string]any)["bins"].([]any)) == 0 {
		t.Errorf("inspected %v", v)
	}
	_, out, _ := anneal("data", "inspect", held)
	if !strings.HasSuffix(out, "next: anneal eval RUN --data "+held+"\n") {
		t.Errorf("inspected: %s", out)
	}
	w.object(exitOK, "train", w.path("run.yaml"), "train.steps=2", "--out", w.path("run"))
	for _, asked := range []string{"1", "7", "1000"} {
		if code, out, errs := anneal("eval", w.path("run"), "--data", held, "--tokens", asked); code != exitOK ||
			!strings.Contains(strings.ReplaceAll(out, ",", ""), "over "+asked+" tokens") {
			t.Errorf("--tokens %s: exit %d: %s%s", asked, code, out, errs)
		}
	}
	v = w.object(exitOK, "eval", w.path("run"), "--data", held)
	code, _, errs := anneal("eval", w.path("run"), "--data", held, "--tokens", "1000000000")
	want := units.Commas(int64(v["tokens"].(float64))) + " targets, fewer than the 1,000,000,000 of --tokens"
	if code != exitOK || !strings.Contains(errs, want) {
		t.Errorf("exit %d, %s, want %s", code, errs, want)
	}
	for _, args := range [][]string{
		{"train", w.path("run.yaml"), "data.path=" + held, "--out", w.path("no")},
		{"train", w.path("run.yaml"), "data.path=" + held, "--dry-run"},
		{"train", w.path("run.yaml"), "data.path=" + held, "data.packing=best_fit", "--out", w.path("no")},
		{"data", "score", held, "--by", "length"},
		{"data", "mix", "a=" + held}, {"lr-find", w.path("run.yaml"), "data.path=" + held},
	} {
		if code, _, errs := anneal(args...); code != exitData || !strings.Contains(errs, "no training split in "+held) {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
	}
	w.object(exitOK, "data", "export", held, w.path("files"), "--to", "nanogpt")
	v = w.object(exitOK, "data", "import", w.path("files"), "--from", "nanogpt", "--tokenizer", w.path("tok.json"),
		"--out", w.path("again"))
	if v["train"].(map[string]any)["tokens"] != 0.0 || v["val"].(map[string]any)["documents"] != 80.0 {
		t.Errorf("imported %v", v)
	}
}

// The command suggested for a data set works: it never trains on held-out text, or on text shorter than a sample of
// the example.
func TestDataIsUsedByACommandThatTakesIt(t *testing.T) {
	if got := nextOfData("d", dataset.Counts{Tokens: tinySample}); got !=
		"anneal train --budget 10m data.path=d --out runs/d" {
		t.Errorf("where there is no example: %q", got)
	}
	t.Chdir("../..")
	cfg, err := config.Load("examples/tiny.yaml", nil)
	if err != nil || cfg.Model.Context+1 != tinySample {
		t.Fatalf("%v: a sample of the example has %d tokens, not %d", err, cfg.Model.Context+1, tinySample)
	}
	for tokens, want := range map[uint64]string{
		0: "anneal eval RUN --data d", tinySample - 1: "",
		tinySample: "anneal train examples/tiny.yaml data.path=d --out runs/d",
	} {
		if got := nextOfData("d", dataset.Counts{Tokens: tokens}); got != want {
			t.Errorf("%d tokens: %q, want %q", tokens, got, want)
		}
	}
}

// A build that fails leaves nothing behind, not even the directory that it made.
func TestAFailedBuildLeavesNoDirectory(t *testing.T) {
	w := workshop{t, t.TempDir()}
	os.WriteFile(w.path("text.jsonl"), []byte("{\"text\": \"a\"}\n{\"text\": \"b\"}\n"), 0o644)
	os.WriteFile(w.path("empty"), nil, 0o644)
	w.object(exitOK, "tokenizer", "train", "--vocab", "257", "--out", w.path("tok.json"), w.path("text.jsonl"))
	w.object(exitOK, "data", "build", "--tokenizer", w.path("tok.json"), "--out", w.path("data"), w.path("text.jsonl"))
	w.object(exitOK, "data", "export", w.path("data"), w.path("bin"), "--to", "nanogpt")
	os.WriteFile(w.path("bin/train.bin"), []byte{255, 255}, 0o644) // not a token of the vocabulary
	os.Mkdir(w.path("old"), 0o755)
	for _, out := range []string{"new", "old"} {
		for _, args := range [][]string{
			// one document is tokenised before the missing prompt or the unknown token is found
			{"data", "build", "--tokenizer", w.path("tok.json"), "--prompt-end", "#", w.path("text.jsonl")},
			{"data", "import", "--tokenizer", w.path("tok.json"), "--from", "nanogpt", w.path("bin")},
		} {
			w.object(exitData, append(args, "--out", w.path(out))...)
		}
		w.object(exitData, "init", w.path(out), "--data", w.path("empty"))
		if _, err := os.Stat(w.path(out)); (err == nil) != (out == "old") {
			t.Errorf("%s: %v", out, err)
		}
	}
}

// If a text is given instead of a file, the error says how to give texts.
func TestATextIsNoFile(t *testing.T) {
	w := newWorkshop(t)
	for _, command := range []string{"encode", "decode"} {
		code, _, errs := anneal("tokenizer", command, w.path("tok.json"), "func main")
		if code != exitData || !strings.Contains(errs, "or - to read the text from standard input") {
			t.Errorf("tokenizer %s: exit %d, %s", command, code, errs)
		}
	}
}

// Data commands end with what they wrote, where, how long it took and what comes next, in text and in JSON.
func TestDataCommandsEndWithWhatTheyWrote(t *testing.T) {
	w := newWorkshop(t)
	file := w.path("text/00.go")
	w.object(exitOK, "tokenizer", "convert", w.path("tok.json"), "--to", "gpt2", "--out", w.path("split"))
	for _, c := range []struct {
		out  string // the JSON key out; "" if nothing is written
		next string
		args []string
	}{
		{w.path("t.json"), "anneal data build --tokenizer " + w.path("t.json") + " --out data/00 " + file,
			[]string{"tokenizer", "train", "--vocab", "280", "--out", w.path("t.json"), file}},
		{"", "anneal tokenizer decode", []string{"tokenizer", "encode", w.path("tok.json"), file}},
		{"", "anneal tokenizer sweep --ext .go",
			[]string{"tokenizer", "eval", w.path("tok.json"), "--ext", ".go", w.path("text")}},
		{"", "anneal tokenizer train", []string{"tokenizer", "sweep", "--vocab", "270,280", "--val", file,
			w.path("text")}},
		{w.path("hf"), "anneal data build --tokenizer " + w.path("hf/tokenizer.json"),
			[]string{"tokenizer", "convert", w.path("tok.json"), "--to", "hf", "--out", w.path("hf")}},
		{w.path("ranks"), "anneal tokenizer eval " + w.path("ranks/ranks.tiktoken") + " --pattern llama3 PATHS",
			[]string{"tokenizer", "convert", w.path("tok.json"), "--to", "tiktoken", "--out", w.path("ranks")}},
		{w.path("split"), "anneal tokenizer eval " + w.path("split/vocab.json") + ` --pattern '\w+|\W+' PATHS`,
			[]string{"tokenizer", "convert", w.path("split"), "--pattern", `\w+|\W+`, "--to", "gpt2", "--out",
				w.path("split")}},
		{w.path("data"), "anneal train", []string{"data", "build", "--replace", "--tokenizer", w.path("tok.json"),
			"--out", w.path("data"), w.path("text")}},
		{w.path("data/scores/length.f32"), "anneal train", []string{"data", "score", w.path("data"), "--by", "length"}},
		{"", "anneal train", []string{"data", "mix", "--context", "32", "a=" + w.path("data")}},
		{w.path("back"), "anneal train", []string{"data", "import", w.path("files"), "--from", "llmc", "--tokenizer",
			w.path("tok.json"), "--out", w.path("back")}},
	} {
		if c.args[1] == "import" {
			v := w.object(exitOK, "data", "export", w.path("data"), w.path("files"), "--to", "llmc")
			w.keys(v, "out", "seconds", "format")
		}
		code, out, errs := anneal(c.args...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if strings.HasPrefix(c.next, "anneal tokenizer decode") {
			lines = strings.Split(strings.TrimSpace(errs), "\n")
		}
		if code != exitOK || len(lines) < 2 {
			t.Errorf("%v: exit %d: %s%s", c.args, code, out, errs)
			continue
		}
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "next: "+c.next) {
			t.Errorf("%v ends with %q, want %q", c.args, last, c.next)
		}
		if what := lines[len(lines)-2]; c.out != "" && !strings.HasPrefix(what, "wrote "+c.out+": ") ||
			!strings.Contains(what, ", in ") || !strings.HasSuffix(what, " s") {
			t.Errorf("%v says %q", c.args, what)
		}
		if c.args[1] == "import" || c.args[1] == "train" {
			c.args = append(c.args, map[string][]string{"import": {"--replace"}}[c.args[1]]...)
		}
		v := w.object(exitOK, c.args...)
		w.keys(v, "seconds")
		if out, _ := v["out"].(string); out != c.out {
			t.Errorf("%v: out is %q, want %q", c.args, out, c.out)
		}
	}
}

// A command that writes below its input reads the same when it is given again.
func TestAnOutputBelowTheInputIsNotRead(t *testing.T) {
	w := newWorkshop(t)
	text := w.path("text")
	write(t, w.path("p.yaml"), "stages: [normalize]\n")
	curate := []string{"data", "curate", w.path("p.yaml"), text, "--out", text + "/clean"}
	for _, args := range [][]string{
		curate, append(curate, "--task-index", "0", "--task-count", "2"),
		append(curate, "--task-index", "1", "--task-count", "2"), curate,
	} {
		w.object(exitOK, args...)
	}
	v := w.object(exitOK, curate...)
	if n := v["report"].(map[string]any)["documents"]; n != 80.0 {
		t.Errorf("curate again reads %v documents, want 80", n)
	}
	if err := os.RemoveAll(text + "/clean"); err != nil {
		t.Fatal(err)
	}
	build := []string{"data", "build", text, "--replace", "--tokenizer", w.path("tok.json"), "--out", text + "/set"}
	train := []string{"tokenizer", "train", text, "--vocab", "280", "--out", text + "/tok.json"}
	for _, args := range [][]string{build, train} {
		for range 2 {
			v := w.object(exitOK, args...)
			if n := v["corpus"].(map[string]any)["documents"]; n != 80.0 {
				t.Errorf("%v reads %v documents, want 80", args, n)
			}
		}
		if err := os.RemoveAll(args[len(args)-1]); err != nil {
			t.Fatal(err)
		}
	}
	code, _, errs := anneal("data", "dedup", text, "--out", text)
	if code != exitData || !strings.Contains(errs, "it is the output too") {
		t.Errorf("dedup: exit %d\n%s", code, errs)
	}
}
