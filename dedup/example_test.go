package dedup_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"anneal/corpus"
	"anneal/dedup"
)

// Run keeps the first of several documents that are the same, or nearly so, and writes those that stay.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "dedup")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	texts := []string{
		"the quick brown fox jumps over the lazy dog near the old river bank",
		"The quick brown fox jumps over the lazy dog, near the old river bank!",
		"a text of its own, about something else altogether",
	}
	documents := func(bool) iter.Seq2[corpus.Document, error] { // a corpus.Reader has such a sequence
		return func(yield func(corpus.Document, error) bool) {
			for i, text := range texts {
				if !yield(corpus.Document{Source: "made", Index: i, Text: []byte(text)}, nil) {
					return
				}
			}
		}
	}
	r, err := dedup.Run(context.Background(), dedup.Options{
		Near: &dedup.MinHash{}, Out: filepath.Join(dir, "clean"),
	}, documents)
	fmt.Println(r.Documents, r.Kept, r.Near, err)
	// Output: 3 2 1 <nil>
}
