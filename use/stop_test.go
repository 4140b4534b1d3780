package use

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anneal/model"
)

// What is handed on does not depend on the pieces in which a text comes: it is the text up to the first text to stop at
// that is complete, letter by letter.
func TestATextStopsWhereItIsComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringOfN(rapid.RuneFrom([]rune("abé")), 0, 30, -1)
		text := letters.Draw(t, "text")
		stops := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("abé")), 1, 5, -1), 0, 3).Draw(t, "stops")
		want, found := text, ""
	search:
		for end := range len(text) + 1 {
			for begin := range end {
				for _, stop := range stops {
					if text[begin:end] == stop {
						want, found = text[:begin], stop
						break search
					}
				}
			}
		}
		var got strings.Builder
		s := stopper{at: stops, emit: func(piece string) { got.WriteString(piece) }}
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			s.write(rest[:n])
			rest = rest[n:]
		}
		if s.found == "" {
			s.flush()
		}
		if got.String() != want || s.found != found {
			t.Fatalf("%q stops at %q and hands on %q, want %q and %q", text, s.found, got.String(), found, want)
		}
	})
}

// A model's text ends before a text to stop at, alone and among many prompts, and says which it was.
func TestGenerateStops(t *testing.T) {
	r, err := openRun(t, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	o := GenerateOptions{Prompt: "the", MaxTokens: 40, Sampling: model.Sampling{Temperature: 1, Seed: 2}}
	var whole strings.Builder
	if _, err := r.Generate(t.Context(), o, func(s string) { whole.WriteString(s) }); err != nil {
		t.Fatal(err)
	}
	letters := []rune(whole.String())
	stop := string(letters[len(letters)/2:][:3])
	o.Stop = []string{"no such text", stop}
	var got strings.Builder
	done, err := r.Generate(t.Context(), o, func(s string) { got.WriteString(s) })
	if err != nil {
		t.Fatal(err)
	}
	if before, _, _ := strings.Cut(whole.String(), stop); got.String() != before || done.Stopped != stop {
		t.Errorf("%q, stopped at %q, want %q", got.String(), done.Stopped, before)
	}
	list, err := r.GenerateMany(t.Context(), []string{"the"}, o, nil)
	if err != nil || list[0].Text != got.String() || list[0].Stopped != stop {
		t.Errorf("among many: %+v, %v", list, err)
	}
	x, err := r.NewText()
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if done, err = x.Continue(t.Context(), o, func(string) {}); err != nil {
		t.Fatal(err)
	}
	turn, err := x.Continue(t.Context(), GenerateOptions{Prompt: "!", MaxTokens: 1}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if read := textOf(r, turn.PromptIDs); read != textOf(r, done.PromptIDs)+got.String()+"!" {
		t.Errorf("after %q the next turn reads %q", got.String(), read)
	}
	if made := textOf(r, done.IDs); !strings.Contains(made, stop) {
		t.Errorf("the tokens that were made are %q, without %q", made, stop)
	}
	o.Stop = []string{""}
	if _, err := r.Generate(t.Context(), o, func(string) {}); err == nil || !strings.Contains(err.Error(), "stop") {
		t.Errorf("an empty text to stop at: %v", err)
	}
}

// textOf is the text of tokens, with U+FFFD for every byte that is no text, as it is handed on.
func textOf(r *Trained, ids []int32) string {
	var text []byte
	for _, id := range ids {
		text = r.Tokenizer.Decode(text, []uint32{uint32(id)})
	}
	return string([]rune(string(text)))
}
