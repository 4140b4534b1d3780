package use

import (
	"fmt"

	"anneal/config"
	"anneal/hf"
	"anneal/internal/shellword"
	"anneal/interop"
	"anneal/run"
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
// and reads both files back. It reads the weights of that model, too, to check that they are still those that the
// adapters began with. The run must have been opened with OpenOptions.Apart.
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
// that model is not the run's without adapters, they do not make up the run's model.
func (r *Trained) peftBase() (path string, notes []string, err error) {
	base, err := r.Base()
	same := false
	if err == nil {
		if err := r.checkBase(base); err != nil {
			return "", nil, err
		}
		same, err = base.HasInitialWeights()
	}
	switch {
	case err != nil:
		return "", []string{fmt.Sprintf("the adapters name no base model, and they suit only the weights that they "+
			"began with, which cannot be read: %v", err)}, nil
	case !same:
		return "", nil, config.Problem{
			Key: "init.weights", At: r.ConfigPath(), Try: "--to hf, which writes all weights",
			Message: fmt.Sprintf("%s has other weights now than those that the adapters began with", base.Path),
		}
	case base.Run:
		export := "anneal export " + shellword.Command(base.Path)
		if base.Step > 0 {
			export += fmt.Sprintf(" --step %d", base.Step)
		}
		return "", []string{fmt.Sprintf("the adapters name no base model, because %s is a run: write it with `%s "+
			"DIR`, load DIR, and then the adapters by PeftModel.from_pretrained(model, directory)",
			base.Path, export)}, nil
	}
	return base.Path, []string{}, nil
}

// checkBase returns an error if the run's model differs from that of the base in more than adapters.
func (r *Trained) checkBase(base *run.Base) error {
	p := config.Problem{At: r.ConfigPath(), Try: "--to hf, which writes all weights"}
	switch {
	case !base.HasVocabularyOf(r.Weights):
		p.Key = "model.vocab"
		p.Message = fmt.Sprintf("%s has another vocabulary than %s, whose rows an adapter for peft leaves as they are",
			r.Path(), base.Path)
	case !base.HasPositionsOf(r.Weights):
		p.Key = "model.rope_scaling"
		p.Message = fmt.Sprintf("%s has other rotary positions than %s, which an adapter for peft leaves as they are: "+
			"model.rope_scaling = %s, there %s", r.Path(), base.Path, r.Config.Model.RopeScaling, base.RopeScaling())
	default:
		return nil
	}
	return p
}
