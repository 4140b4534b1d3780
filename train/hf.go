package train

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"anneal/hf"
	"anneal/model"
	"anneal/precision"
	"anneal/safetensors"
	"anneal/tensor"
	"anneal/tokenizer"
	"anneal/train/checkpoint"
	"anneal/train/config"
)

// ExportReport is what an export wrote and how its self-check went.
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
	return fmt.Sprintf("%s, %d parameters in %s, step %d; read back, its logits differ by at most %.3g on %d probe tokens",
		r.Architecture, r.Parameters, r.DType, r.Step, r.MaxLogitDiff, r.ProbeTokens)
}

// ExportHF writes the model as a directory in Hugging Face layout, with weights in F32 (exact), BF16 or F16 (half the size),
// then reads it back and compares the logits of a probe. It fails if they differ by more than storing can explain.
func (r *Trained) ExportHF(dir string, dtype safetensors.DType) (*ExportReport, error) {
	if limit := r.Model.Config.LogitSoftcap; limit != 0 {
		return nil, config.Problem{
			Key: "model.logit_softcap", Message: fmt.Sprintf("model.logit_softcap = %g has no field in Hugging Face's Llama and Qwen3 formats, so that other tools would compute something else", limit),
			At: r.dir.config(), Try: "a model that is trained with model.logit_softcap = 0",
		}
	}
	tok, err := os.ReadFile(r.dir.tokenizer())
	if err != nil {
		return nil, err
	}
	c := hfConfig(r.Model.Config, r.Tokenizer)
	e := hf.Export{TokenizerJSON: tok, Card: hf.Card{
		Name: filepath.Base(filepath.Clean(dir)),
		Facts: [][2]string{
			{"parameters", fmt.Sprint(r.Model.Count())}, {"trained with", "anneal"}, {"steps", fmt.Sprint(r.Step)},
		},
	}}
	for _, v := range r.Model.HFViews() {
		e.Tensors = append(e.Tensors, safetensors.Float32(v.Name, dtype, v.Tensor.Shape(), float32s(&v.Tensor, v.Scale)))
	}
	if err := hf.ExportLlama(dir, c, e); err != nil {
		return nil, &DataError{err}
	}
	report := &ExportReport{Architecture: "LlamaForCausalLM", Parameters: r.Model.Count(), DType: string(dtype), Step: r.Step}
	if c.QKNorm {
		report.Architecture = "Qwen3ForCausalLM"
	}
	if err := r.checkExport(dir, report); err != nil {
		return nil, fmt.Errorf("%s: the exported model is not the run's: %w", dir, err)
	}
	return report, nil
}

// float32s returns scale times the weights in F32: the model's own memory where that is it, or a copy.
func float32s(t *tensor.Tensor, scale float64) []float32 {
	if t.DType() == tensor.F32 && scale == 1 {
		return t.F32()
	}
	out := make([]float32, t.Len())
	for i := range out {
		out[i] = float32(scale * t.Float64(i))
	}
	return out
}

// checkExport loads the export and compares its logits with the run's on a probe: tokens from all over the vocabulary.
func (r *Trained) checkExport(dir string, report *ExportReport) error {
	m, params, err := loadHF(dir)
	if err != nil {
		return err
	}
	defer params.Close()
	fp32, err := precision.Lookup("fp32")
	if err != nil {
		return err
	}
	probe := make([]int32, min(32, m.Config.Context))
	for i := range probe {
		probe[i] = int32((i*7919 + 1) % m.Config.Vocab)
	}
	policy := fp32
	if r.policy.Master == tensor.F64 {
		policy = r.policy // the run's own model computes in its own precision only
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
	return out, nil
}

// loadHF reads a model directory into F32 weights, which live in the arena that it returns.
func loadHF(dir string) (*model.Decoder, *tensor.Arena, error) {
	src, err := hf.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	defer src.Close()
	fp32, err := precision.Lookup("fp32")
	if err != nil {
		return nil, nil, err
	}
	c := fromHF(src.Config)
	params, err := tensor.NewArena("parameters", model.Measure(c, fp32, 1, c.Context, false).Params)
	if err != nil {
		return nil, nil, err
	}
	m := model.New(c, model.Memory{Params: params, DType: tensor.F32})
	for _, v := range m.HFViews() {
		if err := safetensors.ReadFloat32(src.Weights, v.Name, v.Tensor.F32()); err != nil {
			params.Close()
			return nil, nil, err
		}
	}
	return m, params, nil
}

// ImportHF makes a run directory from a model in Hugging Face layout: its configuration, tokenizer and one checkpoint,
// ready to generate, evaluate and export.
func ImportHF(src, runDirectory string) error {
	m, params, err := loadHF(src)
	if err != nil {
		return &DataError{err}
	}
	defer params.Close()
	path := filepath.Join(src, "tokenizer.json")
	t, err := tokenizer.Load(path)
	if err != nil {
		return &DataError{err}
	}
	if err := checkVocabulary(t, path, m.Config.Vocab); err != nil {
		return err
	}
	tok, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	dir := runDir(runDirectory)
	if err := dir.create(importConfig(m.Config), tok); err != nil {
		return err
	}
	store, err := checkpoint.Open(dir.checkpoints(), checkpoint.Options{Synchronous: true})
	if err != nil {
		return err
	}
	defer store.Close()
	return store.Save(0, 0, weightTensors(m), &state{Model: m.Config, Tokenizer: t.Hash()})
}

// importConfig describes an imported model; what concerns training keeps its defaults.
func importConfig(c model.Config) *config.Config {
	cfg := config.Default()
	m := &cfg.Model
	m.Layers, m.Dim, m.Heads, m.KVHeads, m.HeadDim, m.FFN = c.Layers, c.Dim, c.Heads, c.KVHeads, c.HeadDim, c.FFN
	m.Context, m.Vocab, m.TieEmbeddings, m.QKNorm = c.Context, c.Vocab, c.TieEmbeddings, c.QKNorm
	m.RopeTheta, m.NormEps, m.InitStd = c.RopeTheta, c.NormEps, c.InitStd
	cfg.Train.MicroBatch, cfg.Train.BatchTokens = 1, c.Context
	cfg.Data.Path = "imported"
	cfg.Resolve()
	return cfg
}

func hfConfig(c model.Config, tok *tokenizer.Tokenizer) hf.LlamaConfig {
	out := hf.LlamaConfig{
		VocabSize: c.Vocab, HiddenSize: c.Dim, FFNSize: c.FFN, Layers: c.Layers, Heads: c.Heads, KVHeads: c.KVHeads,
		HeadDim: c.HeadDim, MaxPositions: c.Context, RopeTheta: c.RopeTheta, NormEps: c.NormEps, Tied: c.TieEmbeddings,
		QKNorm: c.QKNorm, InitStd: c.InitStd, BOS: -1, Pad: -1,
	}
	// Documents of the training data begin and end with the same token.
	if eot, ok := tok.EOT(); ok {
		out.BOS, out.EOS = int(eot), []int{int(eot)}
	}
	return out
}

func fromHF(c hf.LlamaConfig) model.Config {
	return model.Config{
		Layers: c.Layers, Dim: c.HiddenSize, Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.HeadDim, FFN: c.FFNSize,
		Context: c.MaxPositions, Vocab: c.VocabSize, TieEmbeddings: c.Tied, QKNorm: c.QKNorm,
		RopeTheta: c.RopeTheta, NormEps: c.NormEps, InitStd: c.InitStd,
	}
}
