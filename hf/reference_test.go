package hf

import (
	"fmt"
	"math"
	"testing"
)

// reference is a Llama in float64, as plain as it can be: the oracle for names, shapes, layouts and settings.
type reference struct {
	c *LlamaConfig
	w map[string][]float64
}

func newReference(t *testing.T, m *Model) *reference {
	t.Helper()
	r := &reference{m.Config.(*LlamaConfig), map[string][]float64{}}
	for _, spec := range m.Config.Tensors() {
		narrow := values(t, m, spec)
		wide := make([]float64, len(narrow))
		for i, v := range narrow {
			wide[i] = float64(v)
		}
		r.w[spec.Name] = wide
	}
	return r
}

// linear is y = W·x with W [out, in].
func linear(w, x []float64) []float64 {
	y := make([]float64, len(w)/len(x))
	for o := range y {
		for i, v := range x {
			y[o] += w[o*len(x)+i] * v
		}
	}
	return y
}

func (r *reference) norm(name string, x []float64) []float64 {
	sum := 0.0
	for _, v := range x {
		sum += v * v
	}
	scale := 1 / math.Sqrt(sum/float64(len(x))+r.c.NormEps)
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v * scale * r.w[name+".weight"][i]
	}
	return y
}

// heads norms (with QK-norm) and turns each head of x by its position.
func (r *reference) heads(x []float64, pos int, norm string) {
	e := r.c.HeadDim
	for h := 0; h < len(x); h += e {
		head := x[h : h+e]
		if r.c.QKNorm {
			copy(head, r.norm(norm, head))
		}
		for i := range e / 2 {
			sin, cos := math.Sincos(float64(pos) * math.Pow(r.c.RopeTheta, -2*float64(i)/float64(e)))
			a, b := head[i], head[i+e/2]
			head[i], head[i+e/2] = a*cos-b*sin, b*cos+a*sin
		}
	}
}

// logits returns [len(ids)][V].
func (r *reference) logits(ids []int) [][]float64 {
	c, d := r.c, r.c.HiddenSize
	x := make([][]float64, len(ids))
	for t, id := range ids {
		x[t] = append([]float64{}, r.w["model.embed_tokens.weight"][id*d:(id+1)*d]...)
	}
	for l := range c.Layers {
		layer := fmt.Sprintf("model.layers.%d.", l)
		weight := func(name string) []float64 { return r.w[layer+name+".weight"] }
		q, k, v := make([][]float64, len(ids)), make([][]float64, len(ids)), make([][]float64, len(ids))
		for t := range ids {
			h := r.norm(layer+"input_layernorm", x[t])
			q[t], k[t], v[t] = linear(weight("self_attn.q_proj"), h), linear(weight("self_attn.k_proj"), h),
				linear(weight("self_attn.v_proj"), h)
			r.heads(q[t], t, layer+"self_attn.q_norm")
			r.heads(k[t], t, layer+"self_attn.k_norm")
		}
		for t := range ids {
			add(x[t], linear(weight("self_attn.o_proj"), r.attend(q[t], k[:t+1], v[:t+1])))
			h := r.norm(layer+"post_attention_layernorm", x[t])
			gate, up := linear(weight("mlp.gate_proj"), h), linear(weight("mlp.up_proj"), h)
			for i, g := range gate {
				up[i] *= g / (1 + math.Exp(-g))
			}
			add(x[t], linear(weight("mlp.down_proj"), up))
		}
	}
	head := "lm_head.weight"
	if c.Tied {
		head = "model.embed_tokens.weight"
	}
	for t := range x {
		x[t] = linear(r.w[head], r.norm("model.norm", x[t]))
	}
	return x
}

func add(x, y []float64) {
	for i := range x {
		x[i] += y[i]
	}
}

// attend is softmax(q·kᵀ/√E)·v of one position over those up to it. Query head h reads key/value head h·K/H.
func (r *reference) attend(q []float64, k, v [][]float64) []float64 {
	e, group := r.c.HeadDim, r.c.Heads/r.c.KVHeads
	out := make([]float64, len(q))
	for h := range r.c.Heads {
		kv := h / group * e
		p, sum := make([]float64, len(k)), 0.0
		for t := range k {
			for i := range e {
				p[t] += q[h*e+i] * k[t][kv+i]
			}
			p[t] = math.Exp(p[t] / math.Sqrt(float64(e)))
			sum += p[t]
		}
		for t := range v {
			for i := range e {
				out[h*e+i] += p[t] / sum * v[t][kv+i]
			}
		}
	}
	return out
}
