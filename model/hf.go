package model

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// A View is a weight of the model in the form of Hugging Face transformers: under its name, with a separate weight
// for each projection of a Llama, and matrices of GPT-2 as [in, out].
type View struct {
	Name   string
	Tensor tensor.Tensor // shares the model's memory, in its own layout

	memory      device.Memory
	scale       float64 // of the weight in an equivalent model without muP; 1 without muP
	queries     int     // the first rows, as many as this, make queries and are also multiplied by queryScale
	queryScale  float64
	head        int     // head size, if the rows of heads are rotary pairs
	interleaved bool    // pairs are neighbouring rows of the tensor, else halves of a head
	neighbours  bool    // and of the format; transformers has halves
	transposed  bool    // transformers has [in, out]
	shift       float64 // transformers has the weight less this number
}

// Whole returns the view of a format that has all matrices as [out, in] and the gains of norms whole.
func (v View) Whole() View {
	v.transposed, v.shift = false, 0
	return v
}

// Neighbours returns the view of a format that has rotary pairs in neighbouring rows.
func (v View) Neighbours() View {
	v.neighbours = true
	return v
}

// Times returns the view of a format that stores the weight multiplied by x.
func (v View) Times(x float64) View {
	v.scale *= x
	return v
}

// Shape returns the shape that the weight has in transformers.
func (v *View) Shape() []int {
	if v.transposed {
		return []int{v.Tensor.Dim(1), v.Tensor.Dim(0)}
	}
	return v.Tensor.Shape()
}

// Values returns a function that fills dst with the weights from element from on, in transformers' layout and without
// muP. The function computes weights when it is called, so no copy of the tensor exists. If the tensor is on a device,
// the first call copies it to the host, and the copy is freed after the last element.
func (v View) Values() func(dst []float32, from int) {
	var host *tensor.Tensor
	copies := v.plain() && v.scale == 1 && (v.queries == 0 || v.queryScale == 1)
	return func(dst []float32, from int) {
		if host == nil {
			host = device.OnHost(v.memory, &v.Tensor)
		}
		if copies {
			copy(dst, host.F32()[from:])
		} else {
			for i := range dst {
				dst[i] = float32(v.value(host, from+i))
			}
		}
		if from+len(dst) == v.Tensor.Len() {
			host = nil
		}
	}
}

// SetValues fills the tensor of a model without muP from weights in transformers' layout.
func (v *View) SetValues(values []float32) {
	device.Fill(v.memory, &v.Tensor, func(host *tensor.Tensor) {
		if v.plain() {
			copy(host.F32(), values)
			return
		}
		for i, x := range values {
			host.SetFloat64(v.index(i), float64(x)+v.shift)
		}
	})
}

// plain reports whether the tensor has the same memory layout as transformers' F32 weight.
func (v *View) plain() bool {
	return v.Tensor.DType() == tensor.F32 && !v.permuted() && !v.transposed && v.shift == 0
}

// permuted reports whether the format orders the rows of a head differently from the tensor.
func (v *View) permuted() bool { return v.head != 0 && v.interleaved != v.neighbours }

// value returns element i of transformers' weight; host is the tensor.
func (v *View) value(host *tensor.Tensor, i int) float64 {
	at := v.index(i)
	x := v.scale * host.Float64(at)
	if at < v.queries*v.cols() {
		x *= v.queryScale
	}
	return x - v.shift
}

// index maps element i of transformers' weight to the index in the tensor. Rows (j, j+E/2) of a head in halves are
// rows (2j, 2j+1) as neighbours, in queries, keys and the gains of QK-norm.
func (v *View) index(i int) int {
	cols := v.cols()
	if rows := v.Tensor.Len() / cols; v.transposed {
		return i%rows*cols + i/rows
	}
	if !v.permuted() {
		return i
	}
	row, col, e := i/cols, i%cols, v.head
	at := row % e
	if v.neighbours {
		return (row-at+at%2*(e/2)+at/2)*cols + col
	}
	return (row-at+2*(at%(e/2))+at/(e/2))*cols + col
}

// cols returns the length of a row; 1 for a vector.
func (v *View) cols() int {
	if v.Tensor.Rank() == 2 {
		return v.Tensor.Dim(1)
	}
	return 1
}

// hfNames maps parameters, and parts of fused ones, to transformers' names. Names of a layer follow hfLayer.
var hfNames = map[string]map[string]string{
	"llama": {
		"embed": "model.embed_tokens.weight", "norm": "model.norm.weight", "head": "lm_head.weight",
		"attention_norm": "input_layernorm.weight", "mlp_norm": "post_attention_layernorm.weight",
		"attention.qkv.q": "self_attn.q_proj.weight", "attention.qkv.k": "self_attn.k_proj.weight",
		"attention.qkv.v": "self_attn.v_proj.weight", "attention.out": "self_attn.o_proj.weight",
		"attention.qkv.bias.q": "self_attn.q_proj.bias", "attention.qkv.bias.k": "self_attn.k_proj.bias",
		"attention.qkv.bias.v": "self_attn.v_proj.bias",
		"attention.q_norm":     "self_attn.q_norm.weight", "attention.k_norm": "self_attn.k_norm.weight",
		"mlp.gate_up.gate": "mlp.gate_proj.weight", "mlp.gate_up.up": "mlp.up_proj.weight",
		"mlp.down": "mlp.down_proj.weight",
	},
	"gpt2": {
		"embed": "transformer.wte.weight", "positions": "transformer.wpe.weight", "head": "lm_head.weight",
		"norm": "transformer.ln_f.weight", "norm.bias": "transformer.ln_f.bias",
		"attention_norm": "ln_1.weight", "attention_norm.bias": "ln_1.bias", "mlp_norm": "ln_2.weight",
		"mlp_norm.bias": "ln_2.bias", "attention.qkv": "attn.c_attn.weight", "attention.qkv.bias": "attn.c_attn.bias",
		"attention.out": "attn.c_proj.weight", "attention.out.bias": "attn.c_proj.bias",
		"mlp.up": "mlp.c_fc.weight", "mlp.up.bias": "mlp.c_fc.bias", "mlp.down": "mlp.c_proj.weight",
		"mlp.down.bias": "mlp.c_proj.bias",
	},
}

// hfOwn holds the names of families that differ from Llama's.
var hfOwn = map[string]map[string]string{
	"olmo2": {
		"attention_post_norm": "post_attention_layernorm.weight", "mlp_post_norm": "post_feedforward_layernorm.weight",
	},
	"gemma2": hfGemma, "gemma3": hfGemma,
	"phi3":      {"attention.qkv": "self_attn.qkv_proj.weight", "mlp.gate_up": "mlp.gate_up_proj.weight"},
	"qwen3_moe": {"mlp.router": "mlp.gate.weight"},
}

var hfGemma = map[string]string{
	"attention_post_norm": "post_attention_layernorm.weight",
	"mlp_norm":            "pre_feedforward_layernorm.weight", "mlp_post_norm": "post_feedforward_layernorm.weight",
}

// hfName returns transformers' name of a parameter or part, without its layer.
func (c Config) hfName(name string) string {
	if c.biased() {
		return hfNames["gpt2"][name]
	}
	if c.Family == "qwen3_moe" && !c.QKNorm {
		if own, is := mixtralName(name); is {
			return own
		}
	}
	if own, is := hfOwn[c.Family][name]; is {
		return own
	}
	if part, is := strings.CutPrefix(name, "experts."); is { // such as gate_up.3.gate
		at := strings.Split(part, ".")
		return "mlp.experts." + at[1] + "." + at[2] + "_proj.weight"
	}
	return hfNames["llama"][name]
}

// mixtralName returns the name of a router or an expert in Mixtral: experts without QK-norm.
func mixtralName(name string) (string, bool) {
	const at = "block_sparse_moe."
	if name == "mlp.router" {
		return at + "gate.weight", true
	}
	part, is := strings.CutPrefix(name, "experts.")
	if !is {
		return "", false
	}
	words := strings.Split(part, ".") // such as gate_up.3.gate
	return at + "experts." + words[1] + "." + map[string]string{"gate": "w1", "down": "w2", "up": "w3"}[words[2]] +
		".weight", true
}

var hfLayer = map[string]string{"llama": "model.layers.%d.", "gpt2": "transformer.h.%d."}

// HFViews returns all weights of the model in the form of transformers, for gpt2, gemma2, gemma3, phi3, qwen3_moe and
// families equivalent to a Llama.
func (m *Decoder) HFViews() []View { return m.HFViewsOf(m.params) }

// HFViewsOf is HFViews of some of the model's parameters.
func (m *Decoder) HFViewsOf(params []*nn.Param) []View {
	var views []View
	for _, p := range params {
		for _, part := range m.Config.hfParts(p) {
			v := m.view(part, &p.Value)
			v.transposed = m.Config.biased() && p.Role == nn.Matrix
			if p.Role == nn.Norm && m.Config.gemma() {
				v.shift = 1
			}
			views = append(views, v)
		}
	}
	return views
}

// hfPart is a run of rows of a parameter that is one weight in transformers.
type hfPart struct {
	name     string // here, without the layer
	hf       string // in transformers
	from, to int    // rows
}

// hfParts returns the weights that a parameter is in transformers: one for each of its parts, but a single one for
// gpt2 and phi3.
func (c Config) hfParts(p *nn.Param) (list []hfPart) {
	family := "llama"
	if c.biased() {
		family = "gpt2"
	}
	name, prefix := p.Name, ""
	if rest, ok := strings.CutPrefix(name, "layers."); ok {
		number, inLayer, _ := strings.Cut(rest, ".")
		layer, err := strconv.Atoi(number)
		if err != nil {
			panic("model: a parameter is called " + p.Name)
		}
		name, prefix = inLayer, fmt.Sprintf(hfLayer[family], layer)
	}
	parts := p.Parts
	if name == "attention.qkv.bias" {
		parts = c.biasParts()
	}
	if family == "gpt2" || c.Family == "phi3" || parts == nil {
		return []hfPart{{name, prefix + c.hfName(name), 0, p.Shape[0]}}
	}
	row := 0
	for _, part := range parts {
		own := strings.TrimSuffix(name+"."+part.Name, ".")
		list = append(list, hfPart{own, prefix + c.hfName(own), row, row + part.Rows})
		row += part.Rows
	}
	return list
}

// view returns the view of a part; t has the rows of the part's parameter.
func (m *Decoder) view(part hfPart, t *tensor.Tensor) View {
	v := View{Name: part.hf, Tensor: t.Slice(part.from, part.to), memory: m.memory}
	m.Config.fold(&v, part.name)
	return v
}

// biasParts are the biases of queries, keys and values, as transformers has them.
func (c Config) biasParts() []nn.Part {
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	return []nn.Part{{Name: "q", Rows: q}, {Name: "k", Rows: kv}, {Name: "v", Rows: kv}}
}

// fold sets the factors that replace the multipliers of muP in a weight or its part, because transformers' formats
// have no fields for them: queries take the scale of the scores, the final norm takes the scale of the logits, and
// input tables take the scale of the input. A tied head is then multiplied together with the embedding, and the final
// norm compensates for it. fold also marks the rows of rotary pairs.
func (c Config) fold(v *View, name string) {
	v.scale, v.queryScale = 1, 1
	if s := c.scoreScale(); s != 0 {
		v.queryScale = s * math.Sqrt(float64(c.HeadDim))
	}
	switch name {
	case "embed", "positions":
		v.scale = c.inputScale()
	case "norm", "norm.bias":
		v.scale = c.logitScale()
		if c.TieEmbeddings {
			v.scale /= c.inputScale()
		}
	case "attention.qkv.q", "attention.qkv", "attention.qkv.bias", "attention.qkv.bias.q":
		if !c.QKNorm {
			v.queries = c.Heads * c.HeadDim
		}
	case "attention.q_norm":
		v.queries = c.qkNormSize()
	}
	switch name {
	case "attention.qkv.q", "attention.qkv.k", "attention.qkv.bias.q", "attention.qkv.bias.k", "attention.q_norm",
		"attention.k_norm":
		v.head, v.interleaved = c.HeadDim, c.Interleaved()
	}
}
