package autograd

import (
	"encoding/json"
	"os"
	"testing"

	"anneal/device"
)

// Linear attention with and without gates and documents, and the gates' projection, forward and backward.
func TestLinearAttentionMatchesPyTorch(t *testing.T) {
	matchLinear(t, "testdata/linear_attention.json", func(string) device.LinearRule { return device.AddRule })
}

// The delta rule with and without decay, in documents.
func TestDeltaRuleMatchesPyTorch(t *testing.T) {
	matchLinear(t, "testdata/delta_rule.json", func(name string) device.LinearRule {
		if name == "gated" {
			return device.GatedDeltaRule
		}
		return device.DeltaRule
	})
}

// Gates per dimension, in documents.
func TestVectorGatesMatchPyTorch(t *testing.T) {
	matchLinear(t, "testdata/gla.json", func(string) device.LinearRule { return device.VectorGateRule })
}

func matchLinear(t *testing.T, path string, rule func(name string) device.LinearRule) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []golden }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			r := newRig(t)
			of := func(name string) []float64 { return c.Tensors[name].Data }
			q := c.Tensors["q"]
			rows, h := q.Shape[0]*q.Shape[1], device.Heads{Q: 4, KV: 2, Size: 5, Rule: rule(c.Name)}
			qkv := r.leaf(fuse(rows, h, of("q"), of("k"), of("v")), rows, h.Cols())
			var x, gates *Var
			var w *Param
			if _, gated := c.Tensors["w"]; gated {
				x = r.leaf(of("x"), c.Tensors["x"].Shape...)
				w = param(of("w"), c.Tensors["w"].Shape...)
				w.Bias = param(of("bias"), len(of("bias")))
				gates = r.Gates(x, w)
			}
			y := r.LinearAttention(qkv, gates, h, device.Mask{Len: q.Shape[1], Start: integers(of("doc_start"))})
			r.equal("y", y.Value.F64(), of("y"))
			r.backward(y, of("dy"))
			r.equal("dqkv", qkv.grad.F64(), fuse(rows, h, of("dq"), of("dk"), of("dv")))
			if gates != nil {
				r.equal("dx", x.grad.F64(), of("dx"))
				r.equal("dw", w.Grad.F64(), of("dw"))
				r.equal("dbias", w.Bias.Grad.F64(), of("dbias"))
			}
		})
	}
}
