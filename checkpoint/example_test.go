package checkpoint_test

import (
	"fmt"
	"os"

	"anneal/checkpoint"
)

func Example() {
	root, err := os.MkdirTemp("", "checkpoints")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(root)
	type state struct{ Sample int64 } // where the data loader stands, say

	weights := []byte{1, 2, 3, 4, 5, 6, 7, 8} // live memory of the model
	tensors := []checkpoint.Tensor{{Name: "w", DType: "F32", Shape: []int{2}, Data: weights}}
	s, err := checkpoint.Open(root, checkpoint.Options{Keep: 2})
	if err != nil {
		panic(err)
	}
	if err := s.Save(100, 6400, tensors, state{Sample: 25}); err != nil {
		panic(err)
	}
	clear(weights) // training goes on while the snapshot is written
	if err := s.Close(); err != nil {
		panic(err)
	}

	var back state
	info, err := checkpoint.LoadLatest(root, tensors, &back)
	if err != nil {
		panic(err)
	}
	fmt.Println(info.Name, info.Tokens, back, weights)
	// Output: step-00000100 6400 {25} [1 2 3 4 5 6 7 8]
}
