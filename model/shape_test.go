package model

import sparse "anneal/attention"

// schemes are positions by their text; "" is none said.
func schemes(text string) (p Positions) {
	if text != "" {
		if err := p.UnmarshalText([]byte(text)); err != nil {
			panic(err)
		}
	}
	return p
}

// seen are patterns by their text; "" is none said.
func seen(text string) (p sparse.Patterns) {
	if text != "" {
		if err := p.UnmarshalText([]byte(text)); err != nil {
			panic(err)
		}
	}
	return p
}

// setMuP turns muP on, with a base model.
func setMuP(c *Config, dim, headDim, ffn, layers int, input, output float64) {
	c.MuP, c.MuPBaseDim, c.MuPBaseHeadDim, c.MuPBaseFFN, c.MuPBaseLayers = true, dim, headDim, ffn, layers
	c.MuPInputScale, c.MuPOutputScale = input, output
}
