package model

import (
	"slices"
	"strings"
)

// AdapterViews returns the adapters in the form of Hugging Face's peft: A, B and, with DoRA, the magnitudes of each
// weight of transformers. A fused weight becomes several weights there, each with a copy of their common A. modules
// are the names of the adapted weights, such as self_attn.q_proj, the same in every layer.
func (m *Decoder) AdapterViews() (views []View, modules []string) {
	for _, p := range m.params {
		if p.Adapter == nil {
			continue
		}
		for _, part := range m.Config.hfParts(p) {
			module := strings.TrimSuffix(part.hf, ".weight")
			add := func(name string, v View) {
				v.Name = "base_model.model." + module + name
				views = append(views, v)
			}
			add(".lora_A.weight", View{Tensor: p.Adapter.Down.Value, memory: m.memory, scale: 1})
			add(".lora_B.weight", m.view(part, &p.Adapter.Up.Value))
			if magnitude := p.Adapter.Magnitude; magnitude != nil {
				add(".lora_magnitude_vector", m.view(part, &magnitude.Value))
			}
			name := strings.TrimSuffix(m.Config.hfName(part.name), ".weight") // without the layer
			if !slices.Contains(modules, name) {
				modules = append(modules, name)
			}
		}
	}
	return views, modules
}
