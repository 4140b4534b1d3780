package cluster

import (
	"fmt"
	"math"

	"anneal/model"
)

// FromModel returns the shape of a model of this program. The remark names what a shape cannot express; "" if there is
// nothing.
func FromModel(name string, decoder *model.Decoder) (s Shape, remark string) {
	m := decoder.Config
	s = Shape{
		Name: name, Layers: m.Layers, Dim: m.Dim, Heads: m.Heads, KVHeads: m.KVHeads, HeadDim: m.HeadDim, FFN: m.FFN,
		Gated: m.Activation == "swiglu" || m.Activation == "geglu", Rotary: m.HasPositions("rope"), Vocab: m.Vocab,
		Context: m.Context, Tied: m.TieEmbeddings, Dropout: m.Dropout > 0,
	}
	if m.Experts > 0 {
		s.Experts, s.TopK, s.ExpertFFN, s.SharedFFN = m.Experts, m.ExpertsPerToken, m.ExpertFFN, m.SharedExpertFFN
	}
	whole := s.attentionFLOPs() / 2 // the causal half, as the model counts
	if share := decoder.AttentionFLOPsPerToken(m.Context) / whole; share < 0.95 {
		s.Mean = max(1, int(share*float64(s.Context)))
	}
	all, _ := s.Parameters()
	if params := float64(decoder.Count()); math.Abs(all/params-1) > 0.02 {
		remark = fmt.Sprintf("planned as a transformer of %.4gM parameters; the model has %.4gM, with parts that a "+
			"plan for a cluster does not know", all/1e6, params/1e6)
	}
	return s, remark
}
