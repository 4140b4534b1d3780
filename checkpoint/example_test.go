package checkpoint_test

import (
	"errors"
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
	s.Copied()     // until here training may only read
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

// Two processes, each with half of a tensor, write one checkpoint; a third reads all of it.
func ExampleStore_Begin() {
	root, err := os.MkdirTemp("", "checkpoints")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(root)
	half := func(from, to int64, data ...byte) []checkpoint.Tensor {
		region := checkpoint.Region{From: from, To: to}
		return []checkpoint.Tensor{{Name: "w", DType: "U8", Shape: []int{2, 3}, Region: region, Data: data}}
	}
	s, err := checkpoint.Open(root, checkpoint.Options{})
	if err != nil {
		panic(err)
	}
	dir, err := s.Begin(100, 6400, nil) // the process that leads tells the others dir
	if err != nil {
		panic(err)
	}
	for number, tensors := range [][]checkpoint.Tensor{half(0, 3, 1, 2, 3), half(3, 6, 4, 5, 6)} {
		w := checkpoint.Writer{Root: root, Number: number} // in each process
		if err := errors.Join(w.Write(dir, tensors), w.Close()); err != nil {
			panic(err)
		}
	}
	if err := errors.Join(s.Commit(2), s.Close()); err != nil { // when the leader knows that both are done
		panic(err)
	}

	whole := []checkpoint.Tensor{{Name: "w", DType: "U8", Shape: []int{2, 3}, Data: make([]byte, 6)}}
	if _, err := checkpoint.LoadLatest(root, whole, nil); err != nil {
		panic(err)
	}
	fmt.Println(whole[0].Data)
	// Output: [1 2 3 4 5 6]
}
