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
	case "dynamic":
		theta, s = dynamicToHF(c)
		return theta, s, nil
	case "longrope":
		short, long := r.Short.Values(), r.Long.Values()
		if short == nil {
			short = long
		}
		s = hf.RopeScaling{
			Type: "longrope", Factor: r.Factor, OriginalPositions: c.RopeOriginalContext,
			AttentionFactor: r.AttentionFactor(c.RopeOriginalContext), ShortFactor: short, LongFactor: long,
		}
	case "yarn":
		s = hf.RopeScaling{
			Type: "yarn", Factor: r.Factor, OriginalPositions: c.RopeOriginalContext,
			AttentionFactor: r.AttentionFactor(0), BetaFast: r.Fast, BetaSlow: r.Slow,
		}
	case "llama3":
		s = hf.RopeScaling{
			Type: "llama3", Factor: r.Factor, OriginalPositions: c.RopeOriginalContext, LowFreq: r.Low,
			HighFreq: r.High,
		}
	}
	return c.RopeTheta, s, nil
}

// dynamicToHF is a base, stretched for the model's context: transformers stretches anew for each row, as if its keys
// had no cache. A model that is not stretched yet is written as dynamic.
func dynamicToHF(c model.Config) (theta float64, s hf.RopeScaling) {
	stretch := c.RopeScaling.Stretch(nn.Lengths{Original: c.RopeOriginalContext, Positions: c.Context})
	switch {
	case c.Context == c.RopeOriginalContext:
		return c.RopeTheta, hf.RopeScaling{
			Type: "dynamic", Factor: c.RopeScaling.Factor, OriginalPositions: c.RopeOriginalContext,
		}
	case c.HeadDim > 2:
		e := float64(c.HeadDim)
		return c.RopeTheta * math.Pow(stretch, e/(e-2)), s
	}
	return c.RopeTheta, s
}

// scalingFromHF is the scaling, without the original context, that a config.json describes, or an error if
// model.rope_scaling cannot say it.
func scalingFromHF(s hf.RopeScaling) (nn.RoPEScaling, error) {
	r := nn.RoPEScaling{
		Kind: s.Type, Factor: s.Factor, Fast: s.BetaFast, Slow: s.BetaSlow, Low: s.LowFreq, High: s.HighFreq,
		Short: nn.FactorsOf(s.ShortFactor), Long: nn.FactorsOf(s.LongFactor),
	}
	usual := r.AttentionFactor(s.OriginalPositions)
	if s.AttentionFactor != 0 && math.Abs(s.AttentionFactor-usual) > 1e-9 {
		r.Attention = s.AttentionFactor
	}
	if _, err := nn.ParseRoPEScaling(r.String()); err != nil {
		return r, fmt.Errorf("config.json: rope_scaling: %w", err)
	}
	return r, nil
}
