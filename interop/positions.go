package interop

import (
	"fmt"
	"math"

	"anneal/hf"
	"anneal/model"
	"anneal/nn"
)

// positionsToHF says how a model's rotary positions are scaled in the words of Hugging Face, whose Llamas have rotary
// ones in every layer, in halves: model.HFViews permutes those that are interleaved. A base that ntk changes is just
// another base.
func positionsToHF(c model.Config, at string) (theta float64, s hf.RopeScaling, err error) {
	if c.Positions.String() != "rope" {
		return 0, s, inexpressible("positions", c.Positions.String(), "rope", at)
	}
	r := c.RopeScaling
	switch r.Kind {
	case "ntk":
		if c.HeadDim > 2 {
			e := float64(c.HeadDim)
			return c.RopeTheta * math.Pow(r.Factor, e/(e-2)), s, nil
		}
	case "linear":
		s = hf.RopeScaling{Type: "linear", Factor: r.Factor}
	case "yarn":
		s = hf.RopeScaling{
			Type: "yarn", Factor: r.Factor, OriginalPositions: c.RopeOriginalContext,
			AttentionFactor: r.AttentionFactor(), BetaFast: r.Fast, BetaSlow: r.Slow,
		}
	case "llama3":
		s = hf.RopeScaling{
			Type: "llama3", Factor: r.Factor, OriginalPositions: c.RopeOriginalContext, LowFreq: r.Low,
			HighFreq: r.High,
		}
	}
	return c.RopeTheta, s, nil
}

// scalingFromHF is the scaling, without the original context, that a config.json describes, or an error if
// model.rope_scaling cannot say it.
func scalingFromHF(s hf.RopeScaling) (nn.RoPEScaling, error) {
	r := nn.RoPEScaling{
		Kind: s.Type, Factor: s.Factor, Fast: s.BetaFast, Slow: s.BetaSlow, Low: s.LowFreq, High: s.HighFreq,
	}
	if usual := r.AttentionFactor(); s.Type == "yarn" && math.Abs(s.AttentionFactor-usual) > 1e-9 {
		r.Attention = s.AttentionFactor
	}
	if _, err := nn.ParseRoPEScaling(r.String()); err != nil {
		return r, fmt.Errorf("config.json: rope_scaling: %w", err)
	}
	return r, nil
}
