package hf

import (
	"fmt"
	"slices"
)

// writtenFor is the version of transformers whose conventions the files follow. Later versions read them, and so does
// 4.51 unless a config's Notes say otherwise.
const writtenFor = "5.0.0"

// Notes returns nothing: older versions of transformers compute the same.
func (c *GPT2Config) Notes() []string { return nil }

// Notes says what older versions of transformers would compute otherwise. They give the window to all layers of a Qwen.
func (c *LlamaConfig) Notes() []string { return c.notes(c.WindowLayers == nil) }

// Notes says what older versions of transformers would compute otherwise. They give windows to every second layer.
func (c *Gemma2Config) Notes() []string {
	return c.notes(slices.Equal(c.layers(), everyNth(c.Layers, 2)))
}

// Notes says what older versions of transformers would compute otherwise. They give windows to all layers except every
// n-th.
func (c *Gemma3Config) Notes() []string { return c.notes(c.period() > 0) }

// Notes says which versions of transformers refuse the model.
func (c *Phi3Config) Notes() []string {
	if c.RopeScaling.Type == "" || c.usualLongRope() {
		return nil
	}
	return []string{fmt.Sprintf("versions 4 of transformers refuse a Phi-3 whose factor of attention, %.4g, does not "+
		"follow from max_position_embeddings / original_max_position_embeddings: load the model with version 5",
		c.RopeScaling.AttentionFactor)}
}

// notes returns the notes on a descendant of Llama. same says that a version that does not read layer_types has the
// same windows.
func (c *LlamaConfig) notes(same bool) (list []string) {
	if !same && c.Window != 0 && c.Window < c.MaxPositions {
		list = append(list, "versions of transformers before 4.53 do not read layer_types and would give windows to "+
			"other layers: load the model with a newer version")
	}
	s := c.RopeScaling
	factor := float64(c.MaxPositions) / float64(max(s.OriginalPositions, 1))
	if s.Type == "yarn" && s.Factor != factor {
		list = append(list, fmt.Sprintf("versions 4 of transformers from before its issue 38224 was mended take "+
			"max_position_embeddings / original_max_position_embeddings = %.4g for YaRN's factor, not %.4g: load the "+
			"model with a newer version", factor, s.Factor))
	}
	return list
}
