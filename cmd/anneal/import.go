package main

import "anneal/train"

type importCmd struct {
	Dir  string `arg:"" name:"hf-dir" help:"Directory with config.json, model.safetensors and tokenizer.json."`
	Out  string `required:"" placeholder:"RUN" help:"Directory of the run to make."`
	From string `default:"hf" enum:"hf" help:"Format: hf is the layout of a Hugging Face repository."`
}

func (importCmd) Help() string { return example("anneal import models/llama --out runs/llama") }

func (c importCmd) Run(s *session) error {
	if err := train.ImportHF(c.Dir, c.Out); err != nil {
		return err
	}
	s.printf("%s: ready for generate, eval and export\n", c.Out)
	return s.emit(map[string]any{"run": c.Out})
}
