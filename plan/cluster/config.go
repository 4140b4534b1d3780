package cluster

import (
	"fmt"
	"math"

	"anneal/model"
)

// FromModel returns the shape of a model of this program. params and flops describe the model itself: the number of
// all parameters, and the operations of forward and backward for a token of the longest sequence, with the causal half
// of attention. The remark names what a shape cannot express; "" if there is nothing.
func FromModel(name string, m model.Config, params int64, flops float64) (s Shape, remark string) {
	s = Shape{
		Name: name, Layers: m.Layers, Dim: m.Dim, Heads: m.Heads, KVHeads: m.KVHeads, HeadDim: m.HeadDim, FFN: m.FFN,
		Gated: m.Activation == "swiglu" || m.Activation == "geglu", Rotary: m.HasPositions("rope"), Vocab: m.Vocab,
		Context: m.Context, Tied: m.TieEmbeddings, Dropout: m.Dropout > 0,
	}
	if m.Experts > 0 {
		s.Experts, s.TopK, s.ExpertFFN, s.SharedFFN = m.Experts, m.ExpertsPerToken, m.ExpertFFN, m.SharedExpertFFN
	}
	all, _ := s.Parameters()
	if math.Abs(all/float64(params)-1) > 0.02 {
		return s, fmt.Sprintf("planned as a transformer of %.4gM parameters; the model has %.4gM, with parts that a "+
			"plan for a cluster does not know", all/1e6, float64(params)/1e6)
	}
	whole := s.attentionFLOPs() / 2 // the causal half
	if share := (flops - 6*s.multiplying()) / whole; share > 0 && share < 0.95 {
		s.Mean = max(1, int(share*float64(s.Context)))
	}
	return s, ""
}
