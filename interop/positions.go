package interop

import (
	"fmt"
	"math"

	"anneal/hf"
	"anneal/model"
	"anneal/nn"
)

// positionsToHF converts the scaling of a model's rotary positions to Hugging Face's form. Llamas there have rotary
// positions in every layer, with pairs in halves; model.HFViews permutes interleaved ones. The scaling ntk is written
// as another base.
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

// dynamicToHF writes dynamic scaling as a base stretched for the model's context, because transformers' own dynamic
// scaling stretches again for each row and ignores that keys are cached. A model that is not stretched yet is written
// as dynamic.
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

// scalingFromHF returns the scaling that a config.json describes, without the original context, or an error if
// model.rope_scaling cannot represent it.
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
