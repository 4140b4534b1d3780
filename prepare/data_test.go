package prepare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"anneal/corpus"
	"anneal/dataset"
	"anneal/tokenizer"
)

// Package corpus knows a data set by its manifest, so it is never read as text.
func TestADataSetIsNoText(t *testing.T) {
	dir := goData(t)
	_, err := corpus.Open([]string{dir}, corpus.Options{})
	if err == nil || !strings.Contains(err.Error(), "not text") {
		t.Errorf("by name: %v", err)
	}
	r, err := corpus.Open([]string{filepath.Dir(dir)}, corpus.Options{})
	if err != nil || len(r.Files()) > 0 {
		t.Errorf("below a directory: %v, %v", r.Files(), err)
	}
}

// Names of special tokens in a text are text, unless they are asked for. A token that was only added stands for its
// text and has its bytes.
func TestSpecialTokensInText(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "text.jsonl")
	if err := os.WriteFile(path, []byte(`{"text": "<|user|>hello<think>world"}`+"\n"+`{"text": "a<|endoftext|>b"}`+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	text := Text{Paths: []string{path}}
	trained, _, err := TrainTokenizer(t.Context(), text,
		tokenizer.TrainOptions{VocabSize: 259, Special: []string{"<|endoftext|>", "<|user|>", "<think>"}})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	trained.WriteTo(&file)
	var doc map[string]any
	if err := json.Unmarshal(file.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	doc["added_tokens"].([]any)[2].(map[string]any)["special"] = false
	edited, _ := json.Marshal(doc)
	tok, err := tokenizer.Read(bytes.NewReader(edited))
	if err != nil {
		t.Fatal(err)
	}
	for special, want := range map[bool][]string{
		false: {"< | u s e r | > h e l l o <think> w o r l d", "a < | e n d o f t e x t | > b"},
		true:  {"<|user|> h e l l o <think> w o r l d", "a", "b"},
	} {
		warned := ""
		o := DataOptions{Dir: filepath.Join(dir, fmt.Sprint(special)), Tokenizer: tok, Special: special,
			Warn: func(text string) { warned += text }}
		if _, _, err := BuildData(t.Context(), text, o); err != nil {
			t.Fatal(err)
		}
		if !special && strings.Count(warned, "<|user|>") != 1 || special && warned != "" {
			t.Errorf("special %v: warned %q", special, warned)
		}
		d, err := dataset.Open(o.Dir)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		var got []string
		bytes, lengths := 0, byteLengths(tok, tok.VocabSize())
		for ids, err := range d.Documents(false) {
			if err != nil {
				t.Fatal(err)
			}
			var doc []string
			for _, id := range ids {
				doc = append(doc, string(tok.Token(id)))
				bytes += int(lengths[id])
			}
			got = append(got, strings.Join(doc, " "))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("special %v (- want, + got):\n%s", special, d)
		}
		if text := len(strings.ReplaceAll(strings.Join(want, " "), " ", "")) - strings.Count(fmt.Sprint(want),
			"<|user|>")*len("<|user|>"); bytes != text {
			t.Errorf("special %v: %d bytes of text, want %d", special, bytes, text)
		}
	}
}

func TestBuildDataNeedsATokenizer(t *testing.T) {
	_, _, err := BuildData(t.Context(), Text{Paths: []string{"data.go"}}, DataOptions{Dir: t.TempDir()})
	if err == nil || !strings.Contains(err.Error(), "TrainTokenizer") {
		t.Errorf("%v", err)
	}
}
