package interop

import (
	"fmt"
	"slices"
	"strings"

	"anneal/attention"
	"anneal/hf"
	"anneal/model"
)

// windowsToHF says which keys the layers of a model see in the words of Hugging Face: one size of window, in the
// layers that windowed names, nil for all of them. Llamas without QK-norm have it in all layers or none.
func windowsToHF(c model.Config, at string) (window int, windowed []bool, err error) {
	inexpressible := inexpressible("attention", c.Attention, "full, or windows of one size", at)
	patterns := []attention.Pattern{attention.Full{}}
	if c.Attention != "" {
		if patterns, err = attention.ParseList(c.Attention); err != nil {
			return 0, nil, err
		}
	}
	for i := range c.Layers {
		w, is := patterns[i%len(patterns)].(attention.Window)
		if !is && patterns[i%len(patterns)] != (attention.Full{}) || is && window > 0 && w.Keys != window {
			return 0, nil, inexpressible
		}
		window = max(window, w.Keys)
		windowed = append(windowed, is)
	}
	switch {
	case !slices.Contains(windowed, false), window == 0:
		return window, nil, nil
	case !c.QKNorm:
		return 0, nil, inexpressible
	}
	return window, windowed, nil
}

// windowsFromHF is the pattern of the layers that a config.json describes.
func windowsFromHF(c *hf.LlamaConfig) string {
	if c.Window == 0 {
		return "full"
	}
	window := fmt.Sprintf("window:%d", c.Window)
	if c.WindowLayers == nil {
		return window
	}
	layers := make([]string, len(c.WindowLayers))
	for i, windowed := range c.WindowLayers {
		if layers[i] = "full"; windowed {
			layers[i] = window
		}
	}
	return strings.Join(layers, ",")
}
