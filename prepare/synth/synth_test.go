package synth

import (
	"slices"
	"testing"

	"anneal/dataset"
	_ "anneal/internal/torture"
)

// The splits hold the documents that they were given, in order, a token for each byte, and prompts are not trained on.
func TestBuildKeepsTheSplits(t *testing.T) {
	text := Text{Train: []string{"1+2=3", "2+2=4"}, Val: []string{"2+3=5"}, PromptEnd: "="}
	dir := t.TempDir()
	m, err := text.Build(t.Context(), dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if m.Tokenizer.VocabSize != bytesVocab || m.Train.Tokens != 12 || m.Val.Tokens != 6 {
		t.Errorf("vocabulary %d, %d and %d tokens, want 257, 12 and 6", m.Tokenizer.VocabSize, m.Train.Tokens,
			m.Val.Tokens)
	}
	d, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	val, err := d.ValLoader(6)
	if err != nil {
		t.Fatal(err)
	}
	var b dataset.Batch
	if err := val.Batch(&b, 0, 1); err != nil {
		t.Fatal(err)
	}
	if want := []int32{-100, -100, -100, -100, b.Targets[4], -100}; !slices.Equal(b.Targets, want) || b.Targets[4] < 0 {
		t.Errorf("targets %v, want that only the answer is one", b.Targets)
	}
	for _, split := range []struct {
		val  bool
		want []string
	}{{false, text.Train}, {true, text.Val}} {
		n := 0
		for tokens, err := range d.Documents(split.val) {
			if err != nil || n >= len(split.want) || len(tokens) != len(split.want[n]) {
				t.Errorf("document %d of validation=%v has %d tokens: %v", n, split.val, len(tokens), err)
			}
			n++
		}
		if n != len(split.want) {
			t.Errorf("%d documents, want %d", n, len(split.want))
		}
	}
}
