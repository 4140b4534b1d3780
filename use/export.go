package use

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"anneal/dataset"
	"anneal/hf"
	"anneal/interop"
	"anneal/model"
	"anneal/precision"
	"anneal/safetensors"
	"anneal/tensor"
	"anneal/train"
)

// ExportReport says what an export wrote, and the result of its self-check.
type ExportReport struct {
	Architecture string  `json:"architecture"`
	Parameters   int64   `json:"parameters"`
	DType        string  `json:"dtype"`
	Step         int64   `json:"step"`
	ProbeTokens  int     `json:"probe_tokens"`
	MaxLogitDiff float64 `json:"max_logit_difference"` // between the run's model and the exported one, read back
}

// String describes the report for people.
func (r *ExportReport) String() string {
	return fmt.Sprintf("%s, %d parameters in %s, step %d; read back, its logits differ by at most %.3g on %d "+
		"probe tokens",
		r.Architecture, r.Parameters, r.DType, r.Step, r.MaxLogitDiff, r.ProbeTokens)
}

// ExportHF writes the model as a directory in Hugging Face layout, with weights in F32 (exact), BF16 or F16 (half the
// size), then reads it back and compares the logits of a probe. It fails if they differ by more than storing can
// explain.
// Adapters are merged into their weights.
func (r *Trained) ExportHF(dir string, dtype safetensors.DType) (*ExportReport, error) {
	if r.Model.Config.LoRARank > 0 {
		r.Model.Merge(r.dev)
	}
	c, err := interop.ToHF(r.Model.Config, interop.Tokens(r.Tokenizer), r.ConfigPath())
	if err != nil {
		return nil, err
	}
	tok, err := r.exportedTokenizer()
	if err != nil {
		return nil, err
	}
	before, after := r.Tokenizer.Around()
	start, _ := r.Around()
	e := hf.Export{TokenizerJSON: tok, Before: before, After: after, Tensors: interop.Tensors(r.Model, dtype),
		Card: hf.Card{
			Name: filepath.Base(filepath.Clean(dir)), Start: strings.Join(start, ""),
			Facts: [][2]string{
				{"parameters", fmt.Sprint(r.Model.Count())}, {"trained with", "anneal"}, {"steps", fmt.Sprint(r.Step)},
			},
		}}
	if err := train.Wait(r.dev); err != nil {
		return nil, err
	}
	if err := hf.Write(dir, c, e); err != nil {
		return nil, &dataset.Error{Err: err}
	}
	report := &ExportReport{Architecture: c.Class(), Parameters: r.Model.Count(), DType: string(dtype), Step: r.Step}
	if err := r.checkExport(dir, report); err != nil {
		return nil, fmt.Errorf("%s: the exported model is not the run's: %w", dir, err)
	}
	return report, nil
}

// checkExport loads the export and compares its logits with the run's on a probe: tokens from all over the vocabulary.
func (r *Trained) checkExport(dir string, report *ExportReport) error {
	fp32, err := precision.Lookup("fp32")
	if err != nil {
		return err
	}
	m, params, err := interop.Load(dir, fp32, r.dev)
	if err != nil {
		return err
	}
	defer params.Close()
	probe := make([]int32, min(32, m.Config.Context))
	for i := range probe {
		probe[i] = int32((i*7919 + 1) % m.Config.Vocab)
	}
	policy := fp32
	if r.Policy.Master == tensor.F64 {
		policy = r.Policy // the run's own model computes in its own precision only
	}
	want, err := r.probe(r.Model, policy, probe)
	if err != nil {
		return err
	}
	got, err := r.probe(m, fp32, probe)
	if err != nil {
		return err
	}
	largest := 0.0
	for i := range want {
		report.MaxLogitDiff = max(report.MaxLogitDiff, math.Abs(got[i]-want[i]))
		largest = max(largest, math.Abs(want[i]))
	}
	report.ProbeTokens = len(probe)
	// BF16 weights carry a relative error of 2⁻⁹ each, F16 ones of 2⁻¹²; F32 ones none.
	limit := 1e-4 * (1 + largest)
	switch safetensors.DType(report.DType) {
	case safetensors.BF16:
		limit = 0.1 * (1 + largest)
	case safetensors.F16:
		limit = 0.0125 * (1 + largest)
	}
	if !(report.MaxLogitDiff <= limit) {
		return fmt.Errorf("its logits differ by %.3g", report.MaxLogitDiff)
	}
	return nil
}

// probe returns the logits after ids.
func (r *Trained) probe(m *model.Decoder, p precision.Policy, ids []int32) ([]float64, error) {
	g, err := model.NewGenerator(m, p, r.dev)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	z := g.Logits(ids)
	out := make([]float64, z.Len())
	for i := range out {
		out[i] = z.Float64(i)
	}
	return out, train.Wait(r.dev)
}
