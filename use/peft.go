package use

import (
	"fmt"

	"anneal/config"
	"anneal/hf"
	"anneal/interop"
	"anneal/safetensors"
	"anneal/train"
)

// AdapterReport says what an export of adapters wrote.
type AdapterReport struct {
	Kind       string   `json:"kind"` // LoRA or DoRA
	Rank       int      `json:"rank"`
	Alpha      float64  `json:"alpha"`
	Modules    []string `json:"modules"`    // that have adapters, by their names in transformers
	Base       string   `json:"base"`       // the model that they adapt
	Parameters int64    `json:"parameters"` // written, with the copies of A that fused weights share
	DType      string   `json:"dtype"`
	Step       int64    `json:"step"`
}

// ExportPEFT writes the adapters of the run alone, in the form of Hugging Face's peft, for the model that the run
// started from. The run must have been opened with OpenOptions.Apart.
func (r *Trained) ExportPEFT(dir string, dtype safetensors.DType) (*AdapterReport, error) {
	c := r.Model.Config
	if c.LoRARank == 0 {
		return nil, config.Problem{
			Key: "model.lora_rank", At: r.ConfigPath(), Try: "--to hf, which writes all weights",
			Message: fmt.Sprintf("%s has no adapters to export: model.lora_rank = 0", r.Path()),
		}
	}
	a, err := interop.Adapter(r.Model, dtype, r.Config.Init.From, r.ConfigPath())
	if err != nil {
		return nil, err
	}
	if err := train.Wait(r.dev); err != nil {
		return nil, err
	}
	report := &AdapterReport{
		Kind: "LoRA", Rank: c.LoRARank, Alpha: c.LoRAAlpha, Modules: a.Modules, Base: a.Base,
		DType: string(dtype), Step: r.Step,
	}
	if c.LoRADora {
		report.Kind = "DoRA"
	}
	for _, t := range a.Tensors {
		n := int64(1)
		for _, d := range t.Shape {
			n *= int64(d)
		}
		report.Parameters += n
	}
	return report, hf.WriteAdapter(dir, a)
}
