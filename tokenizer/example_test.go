package tokenizer_test

import (
	"context"
	"fmt"

	"anneal/tokenizer"
)

// Train on a few documents, encode and decode.
func Example() {
	docs := func(yield func([]byte, error) bool) {
		for range 3 {
			if !yield([]byte("the lower the slower the flower"), nil) {
				return
			}
		}
	}
	t, err := tokenizer.Train(context.Background(), tokenizer.TrainOptions{VocabSize: 264}, docs)
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := t.NewEncoder().Encode(nil, []byte("the lower"))
	for _, id := range ids {
		fmt.Printf("%d %q\n", id, t.Token(id))
	}
	fmt.Println(string(t.Decode(nil, ids)))
	// Output:
	// 259 "the"
	// 220 " "
	// 261 "lower"
	// the lower
}
