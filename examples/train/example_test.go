package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	_ "anneal/internal/torture"
)

// Example trains two steps on the documentation of anneal.
func Example() {
	dir, err := os.MkdirTemp("", "anneal")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	r, err := trainOn(context.Background(), dir, []string{"../../docs"}, "train.steps=2", "train.eval_tokens=1024",
		"model.layers=1", "model.dim=32", "model.heads=2", "train.batch_tokens=512", "schedule.warmup=1")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = os.Stat(filepath.Join(dir, "run", "metrics.jsonl"))
	fmt.Println(r.Step, r.Tokens, r.ValBitsPerByte > 0, err)
	// Output: 2 1024 true <nil>
}
