package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Any token may end a text, and it keeps that role everywhere: in the learned vocabulary, in the data, in generation,
// which stops there, in evaluation, in the files of other tools, and in a model that is exported and imported again.
func TestAnyTokenEndsATextFromTokenizerToImport(t *testing.T) {
	for _, c := range []struct {
		specials, token, flag string
		at                    int // index among the special tokens, which have the last ids
	}{
		{"<|eod|>", "<|eod|>", "", 0},
		{"<｜end▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "", 0},
		{"<fin>,<|user|>", "<fin>", "", 0},
		{"<|pad|>,</s>", "<|pad|>", "", 0},
		{"<|endoftext|>,<|im_end|>", "<|im_end|>", "<|im_end|>", 1},
	} {
		t.Run(c.token, func(t *testing.T) {
			w := workshop{t, t.TempDir()}
			var lines strings.Builder
			for i := range 400 {
				// a text ends after the first two letters or a blank
				fmt.Fprintf(&lines, "{\"text\": \"ab%s\"}\n", strings.Repeat(" ", i%2))
			}
			config := `
precision: fp32
model: {layers: 1, dim: 16, heads: 2, ffn: 32, context: 16}
data: {path: ` + w.path("data") + `}
train: {steps: 60, batch_tokens: 128, eval_every: 60, eval_tokens: 64}
optimizer: {lr: 3e-2}
checkpoint: {every: 30}
`
			for name, text := range map[string]string{"text.jsonl": lines.String(), "run.yaml": config} {
				if err := os.WriteFile(w.path(name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			v := w.object(exitOK, "tokenizer", "train", "--vocab", "300", "--special", c.specials, "--out",
				w.path("tok.json"), w.path("text.jsonl"))
			id := v["vocab_size"].(float64) - float64(len(strings.Split(c.specials, ","))-c.at)
			build := []string{
				"data", "build", "--tokenizer", w.path("tok.json"), "--val", "0.3", "--out", w.path("data"),
				w.path("text.jsonl"),
			}
			if c.flag != "" {
				build = append(build, "--end-of-text", c.flag)
			}
			v = w.object(exitOK, build...)
			if end := v["end_of_text"].(map[string]any); end["token"] != c.token || end["id"] != id {
				t.Errorf("in the data a text ends with %v, want %s, %v", end, c.token, id)
			}
			w.object(exitOK, "data", "verify", w.path("data"))
			w.object(exitOK, "data", "score", w.path("data"), "--by", "length")
			w.object(exitOK, "train", w.path("run.yaml"), "--out", w.path("run"))
			w.object(exitOK, "eval", w.path("run"), "--data", w.path("data"))
			stops := func(run string) {
				t.Helper()
				v := w.object(exitOK, "generate", w.path(run), "--prompt", "ab ", "--temperature", "0",
					"--max-tokens", "20")
				if v["tokens"] != 0.0 {
					t.Errorf("%s goes on after the end of a text with %q", run, v["text"])
				}
			}
			stops("run")
			w.object(exitOK, "export", w.path("run"), w.path("hf"))
			for file, want := range map[string]any{
				"config.json": id, "generation_config.json": id, "tokenizer_config.json": c.token,
				"special_tokens_map.json": c.token,
			} {
				var got map[string]any
				text, err := os.ReadFile(filepath.Join(w.path("hf"), file))
				if err == nil {
					err = json.Unmarshal(text, &got)
				}
				key := "eos_token"
				if _, isID := want.(float64); isID {
					key = "eos_token_id"
				}
				if got[key] != want {
					t.Errorf("%s: %s is %v, want %v; %v", file, key, got[key], want, err)
				}
			}
			w.object(exitOK, "import", w.path("hf"), "--out", w.path("back"))
			stops("back")
			w.object(exitOK, "eval", w.path("back"), "--data", w.path("data"))
			w.object(exitOK, "ckpt", "average", w.path("run"), "--last", "2", "--out", w.path("average"))
			stops("average")

			// Files of other tools: there and back.
			w.object(exitOK, "data", "export", w.path("data"), w.path("files"), "--to", "llmc")
			v = w.object(exitOK, "data", "import", w.path("files"), "--from", "llmc", "--tokenizer",
				filepath.Join(w.path("data"), "tokenizer.json"), "--out", w.path("again"))
			if end := v["end_of_text"].(map[string]any); end["token"] != c.token {
				t.Errorf("imported, a text ends with %v", end)
			}
			w.object(exitOK, "eval", w.path("run"), "--data", w.path("again"))
		})
	}
}

// If the end of text is unknown, or the given token cannot be it, the error names the tokens and the remedy. Data in
// which another token ends a text is refused as the data of a run.
func TestADoubtfulEndOfTextIsAnError(t *testing.T) {
	w := newWorkshop(t)
	w.object(exitOK, "tokenizer", "train", "--vocab", "300", "--special", "<a>,<b>", "--out", w.path("own.json"),
		w.path("text"))
	if err := os.Rename(w.path("own.json"), w.path("other.json")); err != nil { // without the files beside it
		t.Fatal(err)
	}
	build := func(args ...string) []string {
		return append([]string{"data", "build", "--tokenizer", w.path("other.json"), "--out", w.path("new"),
			w.path("text")}, args...)
	}
	for _, c := range []struct {
		code int
		args []string
		want string
	}{
		{exitData, build(), "has <a> and <b>, and nothing says which of them ends a text\n" +
			"  name it with --end-of-text"},
		{exitData, []string{"data", "import", w.path("text"), "--from", "llmc", "--tokenizer", w.path("other.json"),
			"--out", w.path("new")}, "name it with --end-of-text"},
		{exitUsage, build("--end-of-text", "<c>"), "is not a special token of the tokenizer\n  it has <a> and <b>"},
		{exitUsage, []string{"tokenizer", "convert", w.path("other.json"), "--to", "hf", "--out", w.path("hf"),
			"--end-of-text", "func"}, "is not a special token"},
	} {
		if code, _, errs := anneal(c.args...); code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit %d: %s", c.args, code, errs)
		}
	}
	w.object(exitOK, build("--end-of-text", "<b>")...)
	w.object(exitOK, "train", w.path("run.yaml"), "train.steps=1", "data.path="+w.path("new"), "--out", w.path("run"))
	w.object(exitOK, build("--end-of-text", "<a>", "--replace")...)
	if code, _, errs := anneal("eval", w.path("run"), "--data", w.path("new")); code != exitData ||
		!strings.Contains(errs, "a text ends with <a>, but for the run") {
		t.Errorf("data of another end of text: exit %d: %s", code, errs)
	}
}
