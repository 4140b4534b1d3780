package use

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"anneal/dataset"
	"anneal/hf"
	"anneal/internal/floats"
	"anneal/interop"
	"anneal/precision"
	"anneal/safetensors"
	"anneal/tensor"
	"anneal/train"
)

// ExportReport describes the files of an export, and the result of its self-check.
type ExportReport struct {
	Architecture string  `json:"architecture"`
	Parameters   int64   `json:"parameters"`
	DType        string  `json:"dtype"`
	Step         int64   `json:"step"`
	ProbeTokens  int     `json:"probe_tokens"`
	MaxLogitDiff float64 `json:"max_logit_difference"` // between the run's model and the exported one, read back

	Notes []string `json:"notes"`
}

// String describes the report for the user.
func (r *ExportReport) String() string {
	return fmt.Sprintf("%s, %d parameters in %s, step %d; read back, its logits differ by at most %.3g on %d "+
		"probe tokens",
		r.Architecture, r.Parameters, r.DType, r.Step, r.MaxLogitDiff, r.ProbeTokens)
}

// ExportHF writes the model as a directory in Hugging Face layout, with weights in F32 (exact), BF16 or F16 (half the
// size). It reads the directory back, a layer at a time, and compares every weight, and the logits of a probe. If they
// differ by more than the rounding of the format, it fails, and dir does not appear. Adapters are merged into their
// weights.
func (r *Trained) ExportHF(dir string, dtype safetensors.DType) (*ExportReport, error) {
	if err := r.usable(); err != nil {
		return nil, err
	}
	r.MergeAdapters()
	c, err := interop.ToHF(r.Model.Config, r.SpecialTokens(), r.ConfigPath())
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
		ChatTemplate: r.ChatTemplate(),
		Card: hf.Card{
			Name: filepath.Base(filepath.Clean(dir)), Start: strings.Join(start, ""),
			Facts: [][2]string{
				{"parameters", fmt.Sprint(r.Model.Count())}, {"trained with", "anneal"}, {"steps", fmt.Sprint(r.Step)},
			},
		}}
	if err := train.Wait(r.dev); err != nil {
		return nil, err
	}
	if err := interop.CheckRange(r.Model.HFViews(), dtype); err != nil {
		return nil, err
	}
	report := &ExportReport{
		Architecture: c.Class(), Parameters: r.Model.Count(), DType: string(dtype), Step: r.Step,
		Notes: append([]string{}, c.Notes()...),
	}
	var wrong error
	e.Check = func(written string) error {
		wrong = r.checkExport(written, report)
		return wrong
	}
	err = hf.Write(dir, c, e)
	if wrong != nil {
		return nil, fmt.Errorf("%s: the exported model would not be the run's: %w", dir, wrong)
	}
	if err != nil {
		return nil, &dataset.Error{Err: err}
	}
	return report, nil
}

// probeTokens is the number of tokens that the models are compared on.
const probeTokens = 32

// checkExport reads the export back, a layer at a time. Every weight must equal the run's weight in the stored format.
// The logits on a probe, tokens from the whole vocabulary, must equal the run's; this checks the config, which says
// how the weights are used.
func (r *Trained) checkExport(dir string, report *ExportReport) error {
	fp32, err := precision.Lookup("fp32")
	if err != nil {
		return err
	}
	probe := make([]int32, min(probeTokens, r.Model.Config.Context))
	for i := range probe {
		probe[i] = int32((i*7919 + 1) % r.Model.Config.Vocab)
	}
	policy := fp32
	if r.Policy.Master == tensor.F64 {
		policy = r.Policy // the run's own model computes only in its own precision
	}
	want, err := r.Model.Probe(policy, r.dev, probe, nil)
	if err != nil {
		return err
	}
	stored := map[string]floats.Values{}
	for _, v := range r.Model.HFViews() {
		stored[v.Name] = v.Values()
	}
	round := rounding[safetensors.DType(report.DType)]
	got, err := interop.Logits(dir, fp32, r.dev, probe, func(name string, values []float32) error {
		return sameWeights(name, values, stored[name], round)
	})
	if err != nil {
		return err
	}
	if err := train.Wait(r.dev); err != nil {
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

// rounding returns the function that rounds a weight to the stored format.
var rounding = map[safetensors.DType]func(x float32) float32{
	safetensors.F32:  func(x float32) float32 { return x },
	safetensors.BF16: func(x float32) float32 { return floats.FromBF16(floats.ToBF16(x)) },
	safetensors.F16:  func(x float32) float32 { return floats.FromF16(floats.ToF16(x)) },
}

// sameWeights compares values with the run's, which it reads a few at a time.
func sameWeights(name string, values []float32, run floats.Values, round func(x float32) float32) error {
	if run == nil {
		return fmt.Errorf("the run has no %s", name)
	}
	var some [4096]float32
	for from := 0; from < len(values); from += len(some) {
		want := some[:min(len(some), len(values)-from)]
		run(want, from)
		for i, x := range want {
			if got := values[from+i]; got != round(x) {
				return fmt.Errorf("element %d of %s is %v, not %v", from+i, name, got, round(x))
			}
		}
	}
	return nil
}
