package use

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anneal/checkpoint"
	"anneal/dataset"
	"anneal/run"
	"anneal/tokenizer"
	"anneal/train/traintest"
)

// openRun opens a short run whose directory change has been at.
func openRun(t *testing.T, change func(dir string)) (*Trained, error) {
	t.Helper()
	cfg, dir := traintest.Config(traintest.Data(t)), filepath.Join(t.TempDir(), "run")
	cfg.Train.Steps, cfg.Schedule.Warmup = 1, 1
	mustRun(t, run.Options{Config: cfg, Dir: dir})
	change(dir)
	r, err := Open(dir, 1)
	if err == nil {
		t.Cleanup(r.Close)
	}
	return r, err
}

// generate returns the number of tokens made and their text.
func generate(r *Trained, o GenerateOptions) (int, string, error) {
	var text strings.Builder
	done, err := r.Generate(context.Background(), o, func(s string) { text.WriteString(s) })
	return len(done.IDs), text.String(), err
}

// A tokenizer with ids that the model has no rows for would end in a panic at the first such token.
func TestTokenizerLargerThanTheModelIsRefused(t *testing.T) {
	_, err := openRun(t, func(dir string) {
		tok, err := tokenizer.Train(context.Background(), tokenizer.TrainOptions{VocabSize: 400},
			traintest.Documents(200))
		if err != nil {
			t.Fatal(err)
		}
		if err := tok.Save(filepath.Join(dir, "tokenizer.json")); err != nil {
			t.Fatal(err)
		}
	})
	var unfit *dataset.Error
	if !errors.As(err, &unfit) || !strings.Contains(err.Error(), "tokens, but the model has 320") {
		t.Errorf("error %v", err)
	}
}

// Without an end-of-text token nothing begins a document and nothing ends it: token 0 is a token like any other.
func TestGenerationWithoutAnEndOfTextToken(t *testing.T) {
	r, err := openRun(t, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	// Imported models may have such a tokenizer; a run of its own has not.
	o := tokenizer.TrainOptions{VocabSize: r.Tokenizer.VocabSize(), Special: []string{}}
	if r.Tokenizer, err = tokenizer.Train(context.Background(), o, traintest.Documents(200)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Tokenizer.EndOfText(); !errors.Is(err, tokenizer.ErrNoEndOfText) {
		t.Fatalf("the tokenizer still has an end-of-text token: %v", err)
	}
	if n, _, err := generate(r, GenerateOptions{MaxTokens: 3}); n != 0 || err == nil ||
		!strings.Contains(err.Error(), "try a prompt") {
		t.Errorf("without a prompt: %d tokens, %v", n, err)
	}
	for _, p := range r.Model.Params() {
		clear(p.Value.F32()) // equal logits: the most likely token is 0
	}
	if n, _, err := generate(r, GenerateOptions{Prompt: "the", MaxTokens: 3}); n != 3 || err != nil {
		t.Errorf("with a prompt: %d tokens, %v; want 3", n, err)
	}
}

func TestBadGenerationsAreErrors(t *testing.T) {
	r, err := openRun(t, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	bad := GenerateOptions{MaxTokens: 3}
	bad.Temperature = -1
	if _, _, err := generate(r, bad); err == nil || !strings.Contains(err.Error(), "temperature") {
		t.Errorf("temperature -1: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	done, err := r.Generate(ctx, GenerateOptions{MaxTokens: 3}, func(string) {})
	if len(done.IDs) != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %d tokens, %v", len(done.IDs), err)
	}
	wantError(t, "-1 tokens", func() error { _, _, err := generate(r, GenerateOptions{MaxTokens: -1}); return err }(),
		"max tokens: -1 is negative")
	if n, text, err := generate(r, GenerateOptions{}); n != 0 || text != "" || err != nil {
		t.Errorf("no tokens asked for: %d, %q, %v", n, text, err)
	}
}

func TestRunWithoutACheckpointSaysWhenThereWillBeOne(t *testing.T) {
	_, err := openRun(t, func(dir string) {
		if err := os.RemoveAll(filepath.Join(dir, "checkpoints")); err != nil {
			t.Fatal(err)
		}
	})
	if !errors.Is(err, checkpoint.ErrNone) || !strings.Contains(err.Error(), "has not saved yet") {
		t.Errorf("error %v", err)
	}
}

// The text of a generation is in its result, whether someone listens or not.
func TestTheTextOfAGenerationIsInItsResult(t *testing.T) {
	r, err := openRun(t, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	o := GenerateOptions{Prompt: "the", MaxTokens: 9}
	_, want, err := generate(r, o)
	if err != nil {
		t.Fatal(err)
	}
	done, err := r.Generate(t.Context(), o, nil)
	if done.Text != want || want == "" || err != nil {
		t.Errorf("%q, want %q: %v", done.Text, want, err)
	}
	stream := r.NewStream(nil, nil)
	for _, id := range done.IDs {
		stream.Next(id)
	}
	if stopped := stream.End(); stopped != "" {
		t.Errorf("stopped at %q", stopped)
	}
}
