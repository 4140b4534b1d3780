package config

import (
	"fmt"

	"anneal/model"
)

// recompute checks that memory.recompute names a strategy and that the model has layers enough for it.
func (k *checker) recompute() {
	const key = "memory.recompute"
	text, layers := k.c.Memory.Recompute, k.c.Model.Layers
	r, err := model.ParseRecompute(text)
	switch {
	case err != nil:
		k.fault(key, "none, every_layer, every:N, sqrt, selective, budget:SIZE", "%s = %s: %v", key, text, err)
	case r.Segment() >= layers && r.Segment() > 1 && layers > 0:
		k.fault(key, fmt.Sprintf("%s = every_layer, or every:N with N below model.layers = %d", key, layers),
			"%s = %s makes one segment of all %d layers, which saves no memory", key, text, layers)
	}
}
