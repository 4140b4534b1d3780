package model

import (
	"fmt"
	"math"
	"strings"

	"anneal/tensor"
)

// A View is a tensor of the model under the name that Hugging Face transformers uses, one for each projection.
type View struct {
	Name   string
	Tensor tensor.Tensor
	Scale  float64 // of the weight in a model without muP that computes the same; 1 without muP

	interleaved int // head size of rows that stand in neighbouring pairs; transformers has halves
}

// Values returns the weights as transformers has them, times Scale: the model's own memory where that is the same, or a copy.
func (v *View) Values() []float32 {
	t := &v.Tensor
	if t.DType() == tensor.F32 && v.Scale == 1 && v.interleaved == 0 {
		return t.F32()
	}
	out := make([]float32, t.Len())
	for i := range out {
		out[i] = float32(v.Scale * t.Float64(v.index(i)))
	}
	return out
}

// SetValues fills the tensor with weights as transformers has them.
func (v *View) SetValues(values []float32) {
	for i, x := range values {
		v.Tensor.SetFloat64(v.index(i), float64(x))
	}
}

// index is where in the tensor element i of transformers' stands. Rotary pairs (j, j+E/2) of a head are (2j, 2j+1) where they are
// interleaved, in the rows of queries and keys and in the gains of QK-norm.
func (v *View) index(i int) int {
	e := v.interleaved
	if e == 0 {
		return i
	}
	cols := 1
	if v.Tensor.Rank() == 2 {
		cols = v.Tensor.Cols()
	}
	row, col := i/cols, i%cols
	at := row % e
	return (row-at+2*(at%(e/2))+at/(e/2))*cols + col
}

// hfNames maps the parameters of a layer, and the parts of fused ones, to transformers' names.
var hfNames = map[string]string{
	"attention_norm": "input_layernorm", "mlp_norm": "post_attention_layernorm",
	"attention.qkv.q": "self_attn.q_proj", "attention.qkv.k": "self_attn.k_proj", "attention.qkv.v": "self_attn.v_proj",
	"attention.out": "self_attn.o_proj", "attention.q_norm": "self_attn.q_norm", "attention.k_norm": "self_attn.k_norm",
	"mlp.gate_up.gate": "mlp.gate_proj", "mlp.gate_up.up": "mlp.up_proj", "mlp.down": "mlp.down_proj",
}

// HFViews returns every weight in transformers' order: fused weights as the rows of their parts. The tensors share the
// model's memory, so setting their values loads a model.
func (m *Decoder) HFViews() []View {
	var views []View
	add := func(name string, t tensor.Tensor) {
		views = append(views, View{Name: name, Tensor: t, Scale: m.Config.foldedScale(name), interleaved: m.Config.interleaved(name)})
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

// interleaved returns the head size if a weight's rows stand in neighbouring pairs, else 0.
func (c Config) interleaved(name string) int {
	for _, part := range []string{"q_proj", "k_proj", "q_norm", "k_norm"} {
		if c.RopeInterleaved && strings.HasSuffix(name, part+".weight") {
			return c.HeadDim
		}
	}
	return 0
}
