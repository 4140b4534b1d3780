package dataset_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"

	"anneal/dataset"
)

func Example() {
	dir, err := os.MkdirTemp("", "dataset")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	// A tokenizer with one token for each byte, and EOT = 256.
	opt := dataset.BuildOptions{
		Dir:       dir,
		Tokenizer: dataset.Tokenizer{Path: "bytes.json", SHA256: sha256.Sum256([]byte("bytes")), Vocab: 257, EOT: 256},
		NewEncoder: func() func([]uint32, []byte) []uint32 {
			return func(dst []uint32, text []byte) []uint32 {
				for _, c := range text {
					dst = append(dst, uint32(c))
				}
				return dst
			}
		},
	}
	docs := func(yield func([]byte, error) bool) {
		_ = yield([]byte("ABC"), nil) && yield([]byte("DE"), nil)
	}
	if _, err := dataset.Build(context.Background(), opt, docs); err != nil {
		panic(err)
	}

	d, err := dataset.Open(dir)
	if err != nil {
		panic(err)
	}
	defer d.Close()
	train, err := d.TrainLoader(6, 1) // the stream has 7 tokens: one sample of context 6
	if err != nil {
		panic(err)
	}
	var b dataset.Batch
	if err := train.Batch(&b, 0, 1); err != nil {
		panic(err)
	}
	fmt.Println(b.Tokens)
	fmt.Println(b.Targets)
	fmt.Println(b.DocStart)
	// Output:
	// [256 65 66 67 256 68]
	// [65 66 67 256 68 69]
	// [0 0 0 0 4 4]
}
