package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"anneal/config"
	"anneal/prepare"
	"anneal/run"
	"anneal/tokenizer"
	"anneal/use"
)

// A model of one step, trained on this directory's own source, scores a text behind an HTTP handler.
func Example() {
	dir, err := os.MkdirTemp("", "anneal")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := trainTiny(dir); err != nil {
		fmt.Println(err)
		return
	}
	trained, err := use.Open(filepath.Join(dir, "run"), 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer trained.Close()
	server := httptest.NewServer(handler(trained))
	defer server.Close()
	answer, err := http.Post(server.URL+"/score", "text/plain", strings.NewReader("func main() {}"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer answer.Body.Close()
	var score use.Score
	err = json.NewDecoder(answer.Body).Decode(&score)
	fmt.Println(answer.Status, score.Tokens > 0, score.BitsPerByte > 0, err)
	// Output: 200 OK true true <nil>
}

// trainTiny makes a run in dir/run.
func trainTiny(dir string) error {
	ctx, text := context.Background(), prepare.Text{Paths: []string{"main.go", "example_test.go"}}
	tok, _, err := prepare.TrainTokenizer(ctx, text, tokenizer.TrainOptions{VocabSize: 300})
	if err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	_, _, err = prepare.BuildData(ctx, text, prepare.DataOptions{
		Dir: data, Tokenizer: tok, TokenizerPath: filepath.Join(data, "tokenizer.json"),
	})
	if err != nil {
		return err
	}
	cfg, err := config.Load("", []string{
		"data.path=" + data, "model.layers=1", "model.dim=32", "model.heads=2", "model.context=32",
		"train.steps=1", "train.batch_tokens=64", "train.eval_every=0", "schedule.warmup=1",
	})
	if err != nil {
		return err
	}
	_, err = run.Run(ctx, run.Options{Config: cfg, Dir: filepath.Join(dir, "run")})
	return err
}
