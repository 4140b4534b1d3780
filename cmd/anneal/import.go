package main

import (
	"os"
	"strings"
	"time"

	"anneal/internal/units"
	"anneal/run"
)

type importCmd struct {
	Dir  string `arg:"" name:"hf-dir" help:"Directory with config.json, model.safetensors and tokenizer.json."`
	Out  string `required:"" placeholder:"RUN" help:"Directory of the run to make."`
	From string `default:"hf" enum:"hf" help:"Format: hf is the layout of a Hugging Face repository."`
	endOfTextFlag
}

func (importCmd) Help() string {
	return example("anneal import models/llama --out runs/llama", "anneal train CONFIG --init-from runs/llama "+
		"--out runs/tuned") +
		"\n\nThe run computes in the format of the weights: BF16 in bf16, F16 in fp16, F32 and F64 in fp32. " +
		"To change it, edit precision in the run's config.yaml."
}

func (c importCmd) Run(s *session) error {
	if info, err := os.Stat(c.Dir); err == nil && !info.IsDir() {
		return &usageError{c.Dir + " is a file, not the directory of a Hugging Face model",
			"name the directory that holds config.json; GGUF files are written by export, and not read"}
	}
	start := time.Now()
	r, err := run.ImportHF(c.Dir, c.Out, c.EndOfText)
	if err != nil {
		return err
	}
	elapsed := time.Since(start)
	s.printf("%s parameters, stored in %s; generate and eval compute in %s (precision in %s/config.yaml)\n",
		units.Commas(r.Parameters), r.DType, strings.ToUpper(r.Precision), c.Out)
	s.printf("weights %.16s…\n", r.WeightsHash)
	s.closing("a run with the weights of "+c.Dir+", for generate, eval, export and train --init-from",
		c.Out, elapsed, command("anneal", "generate", c.Out))
	return s.emit(struct {
		*run.ImportReport
		Seconds float64 `json:"seconds"`
	}{r, elapsed.Seconds()})
}
