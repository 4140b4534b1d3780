package use

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"anneal/config"
	"anneal/dataset"
	"anneal/gguf"
	"anneal/interop"
	"anneal/train"
)

// GGUFReport describes an export to GGUF, and the result of its self-check.
type GGUFReport struct {
	Architecture  string   `json:"architecture"`
	Parameters    int64    `json:"parameters"`
	DType         string   `json:"dtype"`
	Step          int64    `json:"step"`
	Tensors       int      `json:"tensors"`
	MaxDifference float64  `json:"max_difference"` // of a value read back, relative to the largest of its tensor
	Notes         []string `json:"notes"`
}

// ExportGGUF writes the model with its tokenizer as one file that llama.cpp loads, reads it back and compares every
// value. If a value differs by more than rounding to t explains, it fails, and an existing file at path does not
// change. Memory beyond the model's is a few megabytes. Adapters are merged into their weights.
func (r *Trained) ExportGGUF(path string, t gguf.Type) (*GGUFReport, error) {
	if err := r.usable(); err != nil {
		return nil, err
	}
	r.MergeAdapters()
	if err := train.Wait(r.dev); err != nil {
		return nil, err
	}
	name := strings.TrimSuffix(filepath.Base(filepath.Clean(path)), ".gguf")
	text := interop.GGUFText{
		Name: name, Tokenizer: r.Tokenizer, Special: r.SpecialTokens(), ChatTemplate: r.ChatTemplate(),
	}
	g, err := interop.ToGGUF(r.Model, text, t, r.ConfigPath())
	if err != nil {
		return nil, err
	}
	report := &GGUFReport{
		Architecture: g.Metadata[0].Value.(string), Parameters: r.Model.Count(), DType: t.String(), Step: r.Step,
		Tensors: len(g.Tensors), Notes: append([]string{}, g.Notes...),
	}
	var wrong error
	err = gguf.WriteFile(path, g.Metadata, g.Tensors, func(f *gguf.File) error {
		report.MaxDifference, wrong = g.Check(f)
		return wrong
	})
	if p := (config.Problem{}); errors.As(wrong, &p) { // a value has no place in t
		return nil, p
	}
	if wrong != nil {
		return nil, fmt.Errorf("%s: the exported model would not be the run's: %w", path, wrong)
	}
	if err != nil {
		return nil, &dataset.Error{Err: err}
	}
	return report, nil
}
