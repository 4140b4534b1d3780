package interop

import (
	"fmt"
	"io"
	"strings"

	"anneal/gguf"
	"anneal/internal/floats"
	"anneal/model"
)

// GGUFSource lists the weights that a tensor of a GGUF file is made of.
type GGUFSource struct {
	Len   int // values
	Parts []GGUFPart
}

// GGUFPart is one weight of the model: the whole tensor, or one expert in a stack.
type GGUFPart struct {
	Len    int
	Values func() floats.Values // anew at each call
}

// ggufNames maps names of Hugging Face, without the number of a layer, to llama.cpp's.
var ggufNames = map[string]string{
	"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
	"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
	"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
	"self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
	"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
	"mlp.gate": "ffn_gate_inp", "block_sparse_moe.gate": "ffn_gate_inp",
	"experts.gate_proj": "ffn_gate_exps", "experts.up_proj": "ffn_up_exps", "experts.down_proj": "ffn_down_exps",
	"experts.w1": "ffn_gate_exps", "experts.w3": "ffn_up_exps", "experts.w2": "ffn_down_exps",

	"transformer.wte": "token_embd", "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm",
	"ln_1": "attn_norm", "ln_2": "ffn_norm", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output",
	"mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
}

// ggufSandwich holds the names of families with norms after branches.
var ggufSandwich = map[string]string{
	"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
	"post_feedforward_layernorm": "post_ffw_norm",
}

// inF32 lists the tensors that llama.cpp keeps in F32, besides vectors.
var inF32 = map[string]bool{"position_embd": true, "ffn_gate_inp": true}

// addTensors adds all weights. Experts of one layer are one tensor [experts, out, in]; their views follow each other
// by number. If the blocks of the type do not fit a row, F16 is used instead.
func (g *GGUF) addTensors(m *model.Decoder, a *architecture, t gguf.Type) error {
	at := map[string]int{} // index of a tensor in g.Tensors
	unfit := 0
	for _, v := range m.HFViews() {
		name, stem := a.tensorName(v.Name)
		v = a.arranged(v, stem)
		part := GGUFPart{v.Tensor.Len(), func() floats.Values { return v.Values() }}
		if i, stacked := at[name]; stacked {
			g.Sources[i].Len += part.Len
			g.Sources[i].Parts = append(g.Sources[i].Parts, part)
			g.Tensors[i].Shape[0]++
			continue
		}
		shape, kept := v.Shape(), t
		switch {
		case len(shape) == 1 || inF32[stem]:
			kept = gguf.F32
		case !t.Fits(shape[1]):
			kept, unfit = gguf.F16, unfit+1
		}
		if strings.HasSuffix(stem, "_exps") {
			shape = append([]int{1}, shape...)
		}
		at[name] = len(g.Tensors)
		g.add(name, kept, shape, part)
		if a.headCopy && m.Config.TieEmbeddings && stem == "token_embd" {
			g.add("output.weight", kept, shape, part)
		}
	}
	if a.ropeFactors != nil {
		factors := make([]float32, len(a.ropeFactors))
		for i, f := range a.ropeFactors {
			factors[i] = float32(f)
		}
		g.add("rope_freqs.weight", gguf.F32, []int{len(factors)},
			GGUFPart{len(factors), func() floats.Values { return floats.Of(factors) }})
	}
	if unfit > 0 {
		g.Notes = append(g.Notes, fmt.Sprintf("%d matrices are stored as f16, because their rows do not consist of "+
			"blocks of %v", unfit, t))
	}
	return g.encode()
}

func (g *GGUF) add(name string, t gguf.Type, shape []int, part GGUFPart) {
	g.Tensors = append(g.Tensors, gguf.Tensor{Name: name, Type: t, Shape: shape})
	g.Sources = append(g.Sources, GGUFSource{part.Len, []GGUFPart{part}})
}

// encode makes tensors read their parts, one after the other.
func (g *GGUF) encode() error {
	for i := range g.Tensors {
		t := &g.Tensors[i]
		var parts []io.Reader
		for _, p := range g.Sources[i].Parts {
			e, err := gguf.Float32(t.Name, t.Type, t.Shape, p.Len, p.Values())
			if err != nil {
				return err
			}
			parts = append(parts, e.Data)
		}
		t.Data = io.MultiReader(parts...)
	}
	return nil
}

// tensorName returns llama.cpp's name for one of Hugging Face's, and the part of it that identifies the kind of
// tensor.
func (a *architecture) tensorName(name string) (full, stem string) {
	prefix := ""
	for _, layers := range []string{"model.layers.", "transformer.h."} {
		if rest, is := strings.CutPrefix(name, layers); is {
			number, inLayer, _ := strings.Cut(rest, ".")
			name, prefix = inLayer, "blk."+number+"."
		}
	}
	dot := strings.LastIndexByte(name, '.')
	what, kind := name[:dot], name[dot:] // .weight or .bias
	if _, expert, is := strings.Cut(what, ".experts."); is {
		_, matrix, _ := strings.Cut(expert, ".")
		what = "experts." + matrix
	}
	stem, is := a.names[what]
	if !is {
		if stem, is = ggufNames[what]; !is {
			panic("interop: llama.cpp has no name for " + name)
		}
	}
	return prefix + stem + kind, stem
}

// arranged returns the view in llama.cpp's layout.
func (a *architecture) arranged(v model.View, stem string) model.View {
	v = v.Whole()
	if a.neighbours {
		v = v.Neighbours()
	}
	scaled := "attn_q"
	if a.name == "gemma3" {
		scaled = "attn_q_norm" // the norm would undo a scale of the queries before it
	}
	if stem == scaled {
		v = v.Times(a.scores)
	}
	return v
}

// Check compares all values of all tensors of a file with the model that it was made from. It returns the largest
// difference of a value, relative to the largest value of its tensor.
func (g *GGUF) Check(f *gguf.File) (largest float64, err error) {
	if len(f.Tensors()) != len(g.Tensors) {
		return 0, fmt.Errorf("%d tensors, want %d", len(f.Tensors()), len(g.Tensors))
	}
	for i, t := range g.Tensors {
		difference, most, err := g.Sources[i].compare(f, t)
		if err != nil {
			return 0, err
		}
		if difference == 0 {
			continue
		}
		if limit := rounding[t.Type]; !(difference <= limit.relative*most+limit.absolute) {
			return 0, fmt.Errorf("tensor %s differs by %.3g of its largest value, %.3g, more than rounding to %v "+
				"explains", t.Name, difference/most, most, t.Type)
		}
		largest = max(largest, difference/most)
	}
	return largest, nil
}

// rounding returns the largest allowed error of a value: relative to the largest value of its tensor, and absolute for
// denormal numbers. A scale of Q8_0 is an F16, and is multiplied by up to 127.
var rounding = map[gguf.Type]struct{ relative, absolute float64 }{
	gguf.F32: {0, 0}, gguf.F16: {0x1p-11, 0x1p-25}, gguf.BF16: {0x1p-8, 0x1p-134},
	gguf.Q8_0: {0.5/127 + 0x1p-11, 127 * 0x1p-25},
}

// compare returns the largest difference of a value from that of t in the file, and the largest value. Values that are
// not finite are errors.
func (s GGUFSource) compare(f *gguf.File, t gguf.Tensor) (difference, most float64, err error) {
	const chunk = 8192
	want, got := make([]float32, chunk), make([]float32, chunk)
	at := 0
	for _, p := range s.Parts {
		values := p.Values()
		for from := 0; from < p.Len; from += chunk {
			n := min(chunk, p.Len-from)
			values(want[:n], from)
			if err := f.ReadFloat32(t.Name, got[:n], at); err != nil {
				return 0, 0, err
			}
			for i, x := range want[:n] {
				if !finite(x) {
					return 0, 0, fmt.Errorf("element %d of tensor %s is not a finite number: the model diverged",
						at+i, t.Name)
				}
				if !finite(got[i]) {
					return 0, 0, tooLarge(largest(want[:n]), t.Name, t.Type.String())
				}
				most = max(most, float64(max(x, -x)))
				d := float64(x - got[i])
				difference = max(difference, d, -d)
			}
			at += n
		}
	}
	return difference, most, nil
}
