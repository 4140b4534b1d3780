package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"anneal/gguf"
	"anneal/internal/fileio"
	"anneal/internal/units"
	"anneal/safetensors"
	"anneal/use"
)

type exportCmd struct {
	runArg
	weightsFlag
	Out string `arg:"" name:"out" help:"Directory to write, or file for --to gguf."`
	To  string `default:"hf" enum:"hf,gguf,peft" help:"Format: hf is the layout of a Hugging Face repository, gguf one file for llama.cpp, peft the adapters of a run with model.lora_rank alone."`

	DType string `name:"dtype" aliases:"type" default:"f32" enum:"f32,bf16,f16,q8_0" help:"Number format of the weights: f32 is exact; bf16 and f16 take half the space, q8_0 (gguf only) about a quarter."`
}

func (exportCmd) Help() string {
	return example("anneal export runs/go --to hf exports/go",
		"anneal export runs/go --to gguf exports/go.gguf --dtype q8_0",
		"anneal export runs/lora --to peft adapters/go") +
		"\n\nEvery export is read back and compared with the model: " +
		"hf by its logits, gguf and peft by all their values."
}

func (c exportCmd) Run(s *session) error {
	if err := c.check(); err != nil {
		return err
	}
	start := time.Now()
	c.Apart = c.To == "peft"
	r, err := c.open(s, c.Dir, "cpu", 0, reachFlags{})
	if err != nil {
		return err
	}
	defer r.Close()
	switch c.To {
	case "gguf":
		return c.gguf(s, r, start)
	case "peft":
		return c.adapter(s, r, start)
	}
	return c.hf(s, r, start)
}

// check refuses flags that do not suit the format, before the run is opened.
func (c exportCmd) check() error {
	if c.To != "gguf" {
		if c.DType == "q8_0" {
			return &usageError{"--dtype q8_0 is a format of GGUF files only", "try --to gguf, or --dtype bf16"}
		}
		return nil
	}
	if info, err := os.Stat(c.Out); fileio.IsStdout(c.Out) || err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return &usageError{c.Out + " is not a file that can be read back", "name a file, such as model.gguf"}
	}
	return outFile(c.Out).prepare("the export", "model.gguf")
}

func (c exportCmd) hf(s *session, r *use.Trained, start time.Time) error {
	report, err := r.ExportHF(c.Out, safetensors.DType(strings.ToUpper(c.DType)))
	if err != nil {
		return err
	}
	elapsed := time.Since(start)
	for _, note := range report.Notes {
		s.printf("note: %s\n", note)
	}
	if report.MaxLogitDiff == 0 {
		s.printf("read back: its logits on %d probe tokens equal the model's\n", report.ProbeTokens)
	} else {
		s.printf("read back: its logits on %d probe tokens differ by at most %.3g from the model's\n",
			report.ProbeTokens, report.MaxLogitDiff)
	}
	s.closing(fmt.Sprintf("%s, %s parameters in %s, step %s",
		report.Architecture, units.Commas(report.Parameters), report.DType, units.Commas(report.Step)),
		c.Out, elapsed, command("python3", "-c",
			fmt.Sprintf("from transformers import AutoModelForCausalLM as M; print(M.from_pretrained(%q))", c.Out)))
	return s.emit(struct {
		*use.ExportReport
		Out     string   `json:"out"`
		Seconds float64  `json:"seconds"`
		Damaged []string `json:"damaged"`
	}{report, c.Out, elapsed.Seconds(), faults(r.Skipped)})
}

func (c exportCmd) gguf(s *session, r *use.Trained, start time.Time) error {
	kind := gguf.F32
	for _, t := range gguf.Types {
		if t.Name == c.DType {
			kind = t.Type
		}
	}
	report, err := r.ExportGGUF(c.Out, kind)
	if err != nil {
		return err
	}
	elapsed := time.Since(start)
	for _, note := range report.Notes {
		s.printf("note: %s\n", note)
	}
	if report.MaxDifference == 0 {
		s.printf("read back: all values of %d tensors equal the model's\n", report.Tensors)
	} else {
		s.printf("read back: the values of %d tensors differ by at most %.2g %% of the largest in their tensor\n",
			report.Tensors, 100*report.MaxDifference)
	}
	s.closing(fmt.Sprintf("architecture %s, %s parameters in %s, step %s",
		report.Architecture, units.Commas(report.Parameters), report.DType, units.Commas(report.Step)),
		c.Out, elapsed, command("llama-completion", "-m", c.Out, "-p", "Once", "-n", "64", "--temp", "0"))
	return s.emit(struct {
		*use.GGUFReport
		Out     string   `json:"out"`
		Seconds float64  `json:"seconds"`
		Damaged []string `json:"damaged"`
	}{report, c.Out, elapsed.Seconds(), faults(r.Skipped)})
}

// adapter writes only the adapters of a run.
func (c exportCmd) adapter(s *session, r *use.Trained, start time.Time) error {
	report, err := r.ExportPEFT(c.Out, safetensors.DType(strings.ToUpper(c.DType)))
	if err != nil {
		return err
	}
	elapsed := time.Since(start)
	for _, note := range report.Notes {
		s.printf("note: %s\n", note)
	}
	s.printf("read back: all values equal the run's\n")
	next := ""
	if report.Base != "" {
		next = command("python3", "-c",
			fmt.Sprintf("from peft import AutoPeftModelForCausalLM as M; print(M.from_pretrained(%q))", c.Out))
	}
	s.closing(fmt.Sprintf("%s of rank %d, %s parameters in %s, step %s", report.Kind, report.Rank,
		units.Commas(report.Parameters), report.DType, units.Commas(report.Step)), c.Out, elapsed, next)
	return s.emit(struct {
		*use.AdapterReport
		Out     string   `json:"out"`
		Seconds float64  `json:"seconds"`
		Damaged []string `json:"damaged"`
	}{report, c.Out, elapsed.Seconds(), faults(r.Skipped)})
}
