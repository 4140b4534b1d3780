package model

import (
	"fmt"
	"math"
	"strings"

	"anneal/tensor"
)

// A View is a tensor of the model under the name and in the layout that Hugging Face transformers uses: linear weights
// [out, in], one per projection.
type View struct {
	Name   string
	Tensor tensor.Tensor
	Scale  float64 // of the weight in a model without muP that computes the same; 1 without muP
}

// hfNames maps the parameters of a layer, and the parts of fused ones, to transformers' names.
var hfNames = map[string]string{
	"attention_norm": "input_layernorm", "mlp_norm": "post_attention_layernorm",
	"attention.qkv.q": "self_attn.q_proj", "attention.qkv.k": "self_attn.k_proj", "attention.qkv.v": "self_attn.v_proj",
	"attention.out": "self_attn.o_proj", "attention.q_norm": "self_attn.q_norm", "attention.k_norm": "self_attn.k_norm",
	"mlp.gate_up.gate": "mlp.gate_proj", "mlp.gate_up.up": "mlp.up_proj", "mlp.down": "mlp.down_proj",
}

// HFViews returns every weight in transformers' layout, in its order: fused weights as the rows of their parts. The
// tensors share the model's memory, so writing to them loads a model.
func (m *Decoder) HFViews() []View {
	var views []View
	add := func(name string, t tensor.Tensor) {
		views = append(views, View{name, t, m.Config.foldedScale(name)})
	}
	add("model.embed_tokens.weight", m.embed.Value)
	for i, b := range m.blocks {
		at := fmt.Sprintf("layers.%d.", i)
		for _, p := range b.shared().params {
			name := p.Name[len(at):]
			row := 0
			for _, part := range p.Parts {
				add("model."+at+hfNames[name+"."+part.Name]+".weight", p.Value.Slice(row, row+part.Rows))
				row += part.Rows
			}
			if p.Parts == nil {
				add("model."+at+hfNames[name]+".weight", p.Value)
			}
		}
	}
	add("model.norm.weight", m.norm.Value)
	if m.head != m.embed {
		add("lm_head.weight", m.head.Value)
	}
	return views
}

// foldedScale returns what a weight is multiplied by to do without the multipliers of muP, which transformers' format has
// no fields for: queries take the scale of the scores, the final norm that of the logits, the embedding its own. A tied
// head is then multiplied with the embedding, for which the final norm makes up.
func (c Config) foldedScale(name string) float64 {
	query := "q_proj.weight"
	if c.QKNorm {
		query = "q_norm.weight"
	}
	switch {
	case name == "model.embed_tokens.weight":
		return c.MuP.inputScale()
	case name == "model.norm.weight" && c.TieEmbeddings:
		return c.logitScale() / c.MuP.inputScale()
	case name == "model.norm.weight":
		return c.logitScale()
	case strings.HasSuffix(name, query) && c.scoreScale() != 0:
		return c.scoreScale() * math.Sqrt(float64(c.HeadDim))
	}
	return 1
}
