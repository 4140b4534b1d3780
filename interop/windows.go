package interop

import (
	"slices"

	"anneal/attention"
	"anneal/hf"
	"anneal/model"
)

// windowsToHF converts the patterns of a model's layers to Hugging Face's form: one size of window, and the layers
// that have it; nil means all layers. Llamas without QK-norm, except Gemma 2, have the window in all layers or in
// none.
func windowsToHF(c model.Config, at string) (window int, windowed []bool, err error) {
	inexpressible := inexpressible("attention", c.Attention.String(), "full, or windows of one size", at)
	for i := range c.Layers {
		w, is := c.Attention.Of(i).(attention.Window)
		if !is && c.Attention.Of(i) != (attention.Full{}) || is && window > 0 && w.Keys != window {
			return 0, nil, inexpressible
		}
		window = max(window, w.Keys)
		windowed = append(windowed, is)
	}
	switch {
	case !slices.Contains(windowed, false), window == 0:
		return window, nil, nil
	case !c.QKNorm && !c.QKVBias && c.Family != "gemma2":
		return 0, nil, inexpressible
	}
	return window, windowed, nil
}

// windowsFromHF returns the pattern of the layers that a config.json describes.
func windowsFromHF(c *hf.LlamaConfig) attention.Patterns {
	if c.Window == 0 {
		return attention.Patterns{attention.Full{}}
	}
	window := attention.Window{Keys: c.Window}
	if c.WindowLayers == nil {
		return attention.Patterns{window}
	}
	layers := make(attention.Patterns, len(c.WindowLayers))
	for i, windowed := range c.WindowLayers {
		layers[i] = attention.Full{}
		if windowed {
			layers[i] = window
		}
	}
	return layers
}
