package use

import (
	"fmt"
	"path/filepath"
	"strings"

	"anneal/dataset"
	"anneal/gguf"
	"anneal/interop"
	"anneal/train"
)

// GGUFReport says what an export to GGUF wrote, and the result of its self-check.
type GGUFReport struct {
	Architecture  string   `json:"architecture"`
	Parameters    int64    `json:"parameters"`
	DType         string   `json:"dtype"`
	Step          int64    `json:"step"`
	Tensors       int      `json:"tensors"`
	MaxDifference float64  `json:"max_difference"` // of a value read back, relative to the largest of its tensor
	Notes         []string `json:"notes"`
}

// ExportGGUF writes the model with its tokenizer as one file that llama.cpp loads, then reads it back and compares
// every value. It fails if one differs by more than rounding to t explains. Memory beyond the model's is a few
// megabytes. Adapters are merged into their weights.
func (r *Trained) ExportGGUF(path string, t gguf.Type) (*GGUFReport, error) {
	if r.Model.Config.LoRARank > 0 {
		r.Model.Merge(r.dev)
		if err := train.Wait(r.dev); err != nil {
			return nil, err
		}
	}
	name := strings.TrimSuffix(filepath.Base(filepath.Clean(path)), ".gguf")
	g, err := interop.ToGGUF(r.Model, r.Tokenizer, t, name, r.ConfigPath())
	if err != nil {
		return nil, err
	}
	if err := gguf.WriteFile(path, g.Metadata, g.Tensors); err != nil {
		return nil, &dataset.Error{Err: err}
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil, &dataset.Error{Err: err}
	}
	defer f.Close()
	report := &GGUFReport{
		Architecture: g.Metadata[0].Value.(string), Parameters: r.Model.Count(), DType: t.String(), Step: r.Step,
		Tensors: len(g.Tensors), Notes: append([]string{}, g.Notes...),
	}
	if report.MaxDifference, err = g.Check(f); err != nil {
		return nil, fmt.Errorf("%s: the exported model is not the run's: %w", path, err)
	}
	return report, nil
}
