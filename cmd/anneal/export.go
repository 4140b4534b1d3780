package main

import (
	"fmt"
	"strings"
	"time"

	"anneal/safetensors"
	"anneal/use"
)

type exportCmd struct {
	runArg
	weightsFlag
	Out string `arg:"" name:"out-dir" help:"Directory to write."`
	To  string `default:"hf" enum:"hf,peft" help:"Format: hf is the layout of a Hugging Face repository; peft the adapters of a run with model.lora_rank alone."`

	DType string `name:"dtype" default:"f32" enum:"f32,bf16,f16" help:"Number format of the weights: f32 is exact; bf16 and f16 take half the space."`
}

func (exportCmd) Help() string {
	return example("anneal export runs/go --to hf exports/go", "anneal export runs/lora --to peft adapters/go") +
		"\n\nThe export is read back, and its logits are compared with the model's."
}

func (c exportCmd) Run(s *session) error {
	start := time.Now()
	c.Apart = c.To == "peft"
	r, err := c.open(s, c.Dir, "cpu", 0, reachFlags{})
	if err != nil {
		return err
	}
	defer r.Close()
	if c.To == "peft" {
		return c.adapter(s, r, start)
	}
	report, err := r.ExportHF(c.Out, safetensors.DType(strings.ToUpper(c.DType)))
	if err != nil {
		return err
	}
	elapsed := time.Since(start)
	if report.MaxLogitDiff == 0 {
		s.printf("read back: its logits on %d probe tokens equal the model's\n", report.ProbeTokens)
	} else {
		s.printf("read back: its logits on %d probe tokens differ by at most %.3g from the model's\n",
			report.ProbeTokens, report.MaxLogitDiff)
	}
	s.closing(fmt.Sprintf("%s, %s parameters in %s, step %s",
		report.Architecture, thousands(report.Parameters), report.DType, thousands(report.Step)),
		c.Out, elapsed, command("python3", "-c",
			fmt.Sprintf("from transformers import AutoModelForCausalLM as M; print(M.from_pretrained(%q))", c.Out)))
	return s.emit(struct {
		*use.ExportReport
		Out     string   `json:"out"`
		Seconds float64  `json:"seconds"`
		Damaged []string `json:"damaged"`
	}{report, c.Out, elapsed.Seconds(), faults(r.Skipped)})
}

// adapter writes the adapters of a run alone.
func (c exportCmd) adapter(s *session, r *use.Trained, start time.Time) error {
	report, err := r.ExportPEFT(c.Out, safetensors.DType(strings.ToUpper(c.DType)))
	if err != nil {
		return err
	}
	elapsed := time.Since(start)
	s.closing(fmt.Sprintf("%s of rank %d, %s parameters in %s, step %s", report.Kind, report.Rank,
		thousands(report.Parameters), report.DType, thousands(report.Step)), c.Out, elapsed,
		command("python3", "-c",
			fmt.Sprintf("from peft import AutoPeftModelForCausalLM as M; print(M.from_pretrained(%q))", c.Out)))
	return s.emit(struct {
		*use.AdapterReport
		Out     string   `json:"out"`
		Seconds float64  `json:"seconds"`
		Damaged []string `json:"damaged"`
	}{report, c.Out, elapsed.Seconds(), faults(r.Skipped)})
}
