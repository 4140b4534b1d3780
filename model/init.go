package model

import "anneal/nn"

// A site is the place of a weight in the model, which determines its initialisation.
type site int

const (
	table  site = iota // one row per token: the embedding and the head
	inner              // reads the residual stream: q, k, v, gate, up
	output             // writes to it: attention.out, mlp.down
)

// std returns the initial standard deviation of a weight [out, in] with growth g.
func (c Config) std(s site, out, in int, g nn.Growth) float64 {
	switch c.Init {
	case "he":
		return c.he(s, in) / g.Depth
	case "xavier":
		return c.xavier(s, out, in) / g.Depth
	case "small":
		return c.smallInit(s)
	}
	return c.gpt2(s, g)
}
