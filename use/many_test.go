package use

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"anneal/model"
)

// Prompts that are continued several at a time have the texts that they have one by one.
func TestManyPromptsAreContinuedAsOneByOne(t *testing.T) {
	r, err := openRun(t, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	three, err := Open(r.Path(), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer three.Close()
	var prompts []string
	for i := range 20 {
		prompts = append(prompts, fmt.Sprintf("word%d and ", i%7))
	}
	o := GenerateOptions{MaxTokens: 12, Sampling: model.Sampling{Temperature: 1, Seed: 5}}
	many, err := three.GenerateMany(t.Context(), prompts, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range many {
		one := o
		one.Prompt, one.Seed = prompts[i], o.Seed+uint64(i)
		n, want, err := generate(r, one)
		if err != nil || got.Text != want || got.Tokens != n || got.Ended != (n < o.MaxTokens) {
			t.Errorf("prompt %d: %+v, alone %d tokens %q: %v", i, got, n, want, err)
		}
	}
	if many[0] == many[7] && many[1] == many[8] && many[2] == many[9] {
		t.Error("samples of equal prompts are equal")
	}
}

// What was finished before the end of a context is returned, with the texts of an undisturbed run.
func TestFinishedTextsAreKept(t *testing.T) {
	r, err := openRun(t, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	prompts := make([]string, 40)
	for i := range prompts {
		prompts[i] = fmt.Sprintf("word%d and ", i)
	}
	o := GenerateOptions{MaxTokens: 3, Sampling: model.Sampling{Temperature: 1, Seed: 5}}
	want, err := r.GenerateMany(t.Context(), prompts, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, many := range map[string]func(context.Context, []opening, func(int)) ([]Continuation, error){
		"together": r.continueAll, "one by one": r.oneByOne,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		list := make([]opening, len(prompts))
		for i, prompt := range prompts {
			ids, err := r.Encode(prompt, o.Bare)
			if err != nil {
				t.Fatal(err)
			}
			list[i] = opening{ids, o}
			list[i].o.Seed += uint64(i)
		}
		got, err := many(ctx, list, func(done int) {
			if done == 3 {
				cancel()
			}
		})
		kept := 0
		for i, c := range got {
			if c.Done {
				if kept++; c != want[i] {
					t.Errorf("%s: text %d is %+v, want %+v", name, i, c, want[i])
				}
			}
		}
		if !errors.Is(err, context.Canceled) || kept < 3 || kept == len(prompts) {
			t.Errorf("%s: %d of %d texts are finished, %v", name, kept, len(prompts), err)
		}
	}
}

func TestOfManyPromptsABadOneIsNamed(t *testing.T) {
	r, err := openRun(t, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	o := GenerateOptions{MaxTokens: 2, Bare: true}
	_, err = r.GenerateMany(t.Context(), []string{"a", "", "b"}, o, nil)
	if !errors.Is(err, ErrNoText) || !strings.Contains(err.Error(), "prompt 2") {
		t.Errorf("an empty prompt: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.GenerateMany(ctx, []string{"a"}, o, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
