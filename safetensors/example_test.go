package safetensors_test

import (
	"fmt"
	"os"
	"path/filepath"

	"anneal/safetensors"
)

func Example() {
	dir, err := os.MkdirTemp("", "safetensors")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")
	weights := []float32{1, 2, 3, 4, 5, 6}
	err = safetensors.WriteFile(path, []safetensors.Tensor{
		safetensors.Float32("w", safetensors.BF16, []int{2, 3}, weights),
	}, nil)
	if err != nil {
		panic(err)
	}
	f, err := safetensors.Open(path)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	for _, t := range f.Tensors() {
		back := make([]float32, 6)
		if err := safetensors.ReadFloat32(f, t.Name, back); err != nil {
			panic(err)
		}
		fmt.Println(t.Name, t.DType, t.Shape, back)
	}
	// Output: w BF16 [2 3] [1 2 3 4 5 6]
}
