package use

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"anneal/run"

	"anneal/tokenizer"
)

// An imported model reads a prompt as its tokenizer in transformers does and continues it with the same tokens; so
// does the import of its export. greedy.json says what transformers did.
func TestGreedyAnswersAreThoseOfTransformers(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "greedy.json"))
	if err != nil {
		t.Fatal(err)
	}
	type continuation struct {
		Prompt     string
		Read, Made []int32
	}
	var golden struct{ Models map[string][]continuation }
	if err := json.Unmarshal(text, &golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.Models) == 0 {
		t.Fatal("greedy.json holds no models")
	}
	for name, cases := range golden.Models {
		dir := t.TempDir()
		imported, export, again := filepath.Join(dir, "run"), filepath.Join(dir, "hf"), filepath.Join(dir, "again")
		if _, err := run.ImportHF(filepath.Join("testdata", "greedy", name), imported, ""); err != nil {
			t.Fatal(err)
		}
		generateText(t, imported, export)
		if _, err := run.ImportHF(export, again, ""); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{imported, again} {
			r, err := Open(dir, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cases {
				got, err := r.Generate(t.Context(), GenerateOptions{Prompt: c.Prompt, MaxTokens: 30}, func(string) {})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got.PromptIDs, c.Read) || !slices.Equal(got.IDs, c.Made) {
					t.Errorf("%s, %s: %q is read as %v and continued by %v, transformers read %v and made %v",
						name, filepath.Base(dir), c.Prompt, got.PromptIDs, got.IDs, c.Read, c.Made)
				}
			}
			r.Close()
		}
	}
}

// A text starts with the end-of-text token, as documents did in training, and the export says so to other tools:
// in tokenizer.json, and for those that read only the config, there.
func TestATextStartsAsDocumentsDid(t *testing.T) {
	r, err := openRun(t, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	eot, err := r.Tokenizer.EndOfText()
	if err != nil {
		t.Fatal(err)
	}
	for bare, want := range map[bool][]int32{false: {int32(eot)}, true: nil} {
		for _, id := range r.Tokenizer.NewEncoder().Encode(nil, []byte("sum")) {
			want = append(want, int32(id))
		}
		done, err := r.Generate(t.Context(), GenerateOptions{Prompt: "sum", Bare: bare, MaxTokens: 1}, func(string) {})
		if err != nil || !slices.Equal(done.PromptIDs, want) {
			t.Errorf("bare %v: the model reads %v, want %v; %v", bare, done.PromptIDs, want, err)
		}
	}
	if _, err := r.Generate(t.Context(), GenerateOptions{Bare: true, MaxTokens: 1}, nil); err != ErrNoText {
		t.Errorf("a bare prompt of nothing: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "hf")
	if _, err := r.ExportHF(dir, "F32"); err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.Load(filepath.Join(dir, "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	if before, after := tok.Around(); !slices.Equal(before, []uint32{eot}) || len(after) > 0 {
		t.Errorf("the export puts %v and %v around a text", before, after)
	}
	if tok.Hash() != r.Tokenizer.Hash() {
		t.Errorf("the tokenizer of the export has the hash %s, that of the run %s", tok.Hash(), r.Tokenizer.Hash())
	}
	var said struct {
		AddBOS bool   `json:"add_bos_token"`
		AddEOS *bool  `json:"add_eos_token"`
		BOS    string `json:"bos_token"`
	}
	text, err := os.ReadFile(filepath.Join(dir, "tokenizer_config.json"))
	if err == nil {
		err = json.Unmarshal(text, &said)
	}
	if err != nil || !said.AddBOS || said.AddEOS == nil || *said.AddEOS || said.BOS != string(tok.Token(eot)) {
		t.Errorf("tokenizer_config.json says %s; %v", text, err)
	}
}

// The most tokens that a number can say are no fewer than one.
func TestAnAnswerOfAnyLengthIsMade(t *testing.T) {
	r, err := openRun(t, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done, err := r.Generate(ctx, GenerateOptions{Prompt: "one", MaxTokens: math.MaxInt}, func(string) { cancel() })
	if len(done.IDs) == 0 || err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("%d tokens, %v", len(done.IDs), err)
	}
}

// A text goes on from turn to turn: what was read and made before is read again, until a reset.
func TestATextIsWrittenInTurns(t *testing.T) {
	r, err := openRun(t, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	x, err := r.NewText()
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	turn := func(prompt string) Generated {
		t.Helper()
		done, err := x.Continue(t.Context(), GenerateOptions{Prompt: prompt, MaxTokens: 4}, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	first := turn("one")
	second := turn("two")
	want := slices.Concat(first.PromptIDs, first.IDs)
	for _, id := range r.Tokenizer.EncodeSpecial([]byte("two")) {
		want = append(want, int32(id))
	}
	if !slices.Equal(second.PromptIDs, want) {
		t.Errorf("the second turn reads %v, want %v", second.PromptIDs, want)
	}
	x.Reset()
	if again := turn("one"); !slices.Equal(again.PromptIDs, first.PromptIDs) || !slices.Equal(again.IDs, first.IDs) {
		t.Errorf("after a reset %v and %v, at first %v and %v", again.PromptIDs, again.IDs, first.PromptIDs, first.IDs)
	}
}
