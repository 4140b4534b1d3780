package main

import (
	"strings"

	"anneal/safetensors"
)

type exportCmd struct {
	runArg
	weightsFlag
	Out string `arg:"" name:"out-dir" help:"Directory to write."`
	To  string `default:"hf" enum:"hf" help:"Format: hf is the layout of a Hugging Face repository."`

	DType string `name:"dtype" default:"f32" enum:"f32,bf16,f16" help:"Weights: f32 is exact, bf16 and f16 half the size."`
}

func (exportCmd) Help() string {
	return example("anneal export runs/go --to hf exports/go") +
		"\n\nBefore it ends, it reads back what it wrote and compares the model's output on a probe."
}

func (c exportCmd) Run(s *session) error {
	r, err := c.open(c.Dir, "cpu", 0, reachFlags{})
	if err != nil {
		return err
	}
	defer r.Close()
	report, err := r.ExportHF(c.Out, safetensors.DType(strings.ToUpper(c.DType)))
	if err != nil {
		return err
	}
	s.printf("%s: %v\n", c.Out, report)
	return s.emit(report)
}
