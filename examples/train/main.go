// Command train trains a small language model on documents of your own, with the packages of anneal: it learns a
// tokenizer, makes a data set, trains, and saves a run that every command of anneal can use.
//
//	go run ./examples/train DIR docs/ notes.txt
//
// A module of your own beside the clone needs the line `replace anneal => ../anneal` in its go.mod; `go mod tidy` adds
// the rest.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"

	"anneal/config"
	"anneal/prepare"
	"anneal/run"
	"anneal/tokenizer"
	"anneal/train"
)

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: train DIR FILES-OR-DIRS…")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) // an interrupted run is saved
	defer stop()
	r, err := trainOn(ctx, os.Args[1], os.Args[2:], "train.steps=200")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("step %d: %.3f bits per byte of held-out text\n", r.Step, r.ValBitsPerByte)
}

// trainOn trains on documents. Its output is below dir: the data set in dir/data, the run in dir/run. Overrides are
// keys of a config, as `anneal explain` lists them.
func trainOn(ctx context.Context, dir string, documents []string, overrides ...string) (*run.Result, error) {
	text := prepare.Text{Paths: documents}
	tok, _, err := prepare.TrainTokenizer(ctx, text, tokenizer.TrainOptions{VocabSize: 1024})
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	_, _, err = prepare.BuildData(ctx, text, prepare.DataOptions{
		Dir: data, Tokenizer: tok, TokenizerPath: filepath.Join(data, "tokenizer.json"), ValFraction: 0.05,
	})
	if err != nil {
		return nil, err
	}
	cfg, err := config.Load("", append([]string{
		"data.path=" + data, "model.layers=4", "model.dim=128", "model.heads=4", "model.context=128",
		"train.batch_tokens=4096", "optimizer.lr=2e-3", "schedule.warmup=10",
	}, overrides...))
	if err != nil {
		return nil, err
	}
	return run.Run(ctx, run.Options{
		Config: cfg, Dir: filepath.Join(dir, "run"), Warn: func(text string) { log.Print(text) },
		OnProgress: func(e train.Event) {
			if e.Step%20 == 0 {
				log.Printf("step %d of %d, loss %.3f, %.0f tokens/s", e.Step, e.Steps, e.Loss, e.TokensPerSecond)
			}
		},
	})
}
