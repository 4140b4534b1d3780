package main

import (
	"time"

	"anneal/train"
)

type importCmd struct {
	Dir  string `arg:"" name:"hf-dir" help:"Directory with config.json, model.safetensors and tokenizer.json."`
	Out  string `required:"" placeholder:"RUN" help:"Directory of the run to make."`
	From string `default:"hf" enum:"hf" help:"Format: hf is the layout of a Hugging Face repository."`
}

func (importCmd) Help() string { return example("anneal import models/llama --out runs/llama") }

func (c importCmd) Run(s *session) error {
	start := time.Now()
	if err := train.ImportHF(c.Dir, c.Out); err != nil {
		return err
	}
	elapsed := time.Since(start)
	s.closing("a run with the weights of "+c.Dir+", for generate, eval and export", c.Out, elapsed, command("anneal", "generate", c.Out))
	return s.emit(map[string]any{"run": c.Out, "seconds": elapsed.Seconds()})
}
