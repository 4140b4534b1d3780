package interop

import (
	"anneal/hf"
	"anneal/model"
	"anneal/safetensors"
)

// Adapter returns the adapters of a model in the form of Hugging Face's peft. ToHF must be able to represent the
// model. base is its path, or empty.
func Adapter(m *model.Decoder, dtype safetensors.DType, base, at string) (hf.Adapter, error) {
	c := m.Config
	a := hf.Adapter{Rank: c.LoRARank, Alpha: c.LoRAAlpha, DoRA: c.LoRADora, Base: base, Conv1D: c.Family == "gpt2"}
	c.LoRARank = 0 // the rest of the model must have a form there
	if _, err := ToHF(c, hf.Tokens{BOS: -1, Pad: -1}, at); err != nil {
		return a, err
	}
	views, modules := m.AdapterViews()
	a.Modules = modules
	if err := CheckRange(views, dtype); err != nil {
		return a, err
	}
	for _, v := range views {
		a.Tensors = append(a.Tensors, safetensors.Float32From(v.Name, dtype, v.Shape(), v.Tensor.Len(), v.Values()))
	}
	return a, nil
}
