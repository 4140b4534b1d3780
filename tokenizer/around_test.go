package tokenizer

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// What is put around a text comes back from a file, and leaves the ids of the text, and so the hash, as they are.
func TestSetAround(t *testing.T) {
	tok := mustTrain(t, TrainOptions{VocabSize: 300, Special: []string{"<a>", "<b>", "\"c\""}}, "text")
	id := func(name string) uint32 {
		n, ok := tok.ID(name)
		if !ok {
			t.Fatalf("no token %s", name)
		}
		return n
	}
	hash := tok.Hash()
	for _, c := range [][2][]uint32{
		{{id("<a>")}, nil},
		{{id("<a>"), id("<b>")}, {id(`"c"`)}},
		{nil, {id("<a>")}},
		{{id("<a>")}, {id("<a>")}},
		{nil, nil},
	} {
		if err := tok.SetAround(c[0], c[1]); err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		if _, err := tok.WriteTo(&file); err != nil {
			t.Fatal(err)
		}
		back, err := Read(&file)
		if err != nil {
			t.Fatal(err)
		}
		if before, after := back.Around(); !slices.Equal(before, c[0]) || !slices.Equal(after, c[1]) {
			t.Errorf("%v came back as %v and %v", c, before, after)
		}
		if back.Hash() != hash {
			t.Errorf("%v changed the hash", c)
		}
	}
	err := tok.SetAround([]uint32{id("t")}, nil)
	if err == nil || !strings.Contains(err.Error(), "is not a special token") {
		t.Errorf("a token of text before a text: %v", err)
	}
}
