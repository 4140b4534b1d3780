package use

import (
	"fmt"

	"anneal/config"
	"anneal/hf"
	"anneal/interop"
	"anneal/safetensors"
	"anneal/train"
)

// AdapterReport describes an export of adapters.
type AdapterReport struct {
	Kind       string   `json:"kind"` // LoRA or DoRA
	Rank       int      `json:"rank"`
	Alpha      float64  `json:"alpha"`
	Modules    []string `json:"modules"`    // modules with adapters, by their names in transformers
	Base       string   `json:"base"`       // the model that they adapt; "" if peft cannot load it
	Parameters int64    `json:"parameters"` // number written, including copies of an A that fused weights share
	DType      string   `json:"dtype"`
	Step       int64    `json:"step"`
	Notes      []string `json:"notes"`
}

// ExportPEFT writes only the adapters of the run, in the form of Hugging Face's peft, for the model that they adapt,
// and reads both files back. The run must have been opened with OpenOptions.Apart.
func (r *Trained) ExportPEFT(dir string, dtype safetensors.DType) (*AdapterReport, error) {
	if err := r.usable(); err != nil {
		return nil, err
	}
	c := r.Model.Config
	if c.LoRARank == 0 {
		return nil, config.Problem{
			Key: "model.lora_rank", At: r.ConfigPath(), Try: "--to hf, which writes all weights",
			Message: fmt.Sprintf("%s has no adapters to export: model.lora_rank = 0", r.Path()),
		}
	}
	base, notes, err := r.peftBase()
	if err != nil {
		return nil, err
	}
	a, err := interop.Adapter(r.Model, dtype, base, r.ConfigPath())
	if err != nil {
		return nil, err
	}
	if err := train.Wait(r.dev); err != nil {
		return nil, err
	}
	report := &AdapterReport{
		Kind: "LoRA", Rank: c.LoRARank, Alpha: c.LoRAAlpha, Modules: a.Modules, Base: a.Base,
		DType: string(dtype), Step: r.Step,
		Notes: notes,
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
	check, err := interop.Adapter(r.Model, dtype, base, r.ConfigPath())
	if err != nil {
		return nil, err
	}
	var wrong error
	err = hf.WriteAdapter(dir, a, func(written string) error {
		wrong = hf.CheckAdapter(written, check)
		return wrong
	})
	if wrong != nil {
		return nil, fmt.Errorf("%s: the exported adapters would not be the run's: %w", dir, wrong)
	}
	if err != nil {
		return nil, err
	}
	return report, nil
}

// peftBase returns the path of the model that the adapters adapt, "" with a note if peft cannot load it from there. If
// the run has another vocabulary than that model, the adapters alone do not make up the run's model.
func (r *Trained) peftBase() (path string, notes []string, err error) {
	base, err := r.Base()
	switch {
	case err != nil:
		return "", []string{fmt.Sprintf("the adapters name no base model, and its vocabulary was not compared, "+
			"because it cannot be read: %v", err)}, nil
	case !base.HasVocabularyOf(r.Weights):
		return "", nil, config.Problem{
			Key: "model.vocab", At: r.ConfigPath(), Try: "--to hf, which writes all weights",
			Message: fmt.Sprintf("%s has another vocabulary than %s, whose rows an adapter for peft leaves as they are",
				r.Path(), base.Path),
		}
	case base.Run:
		return "", []string{fmt.Sprintf("the adapters name no base model, because %s is a run: export it with --to "+
			"hf, load that, and then the adapters by PeftModel.from_pretrained(model, directory)", base.Path)}, nil
	}
	return base.Path, []string{}, nil
}
