package model

import "anneal/nn"

// A site is where a weight stands in the model; initialisation goes by it.
type site int

const (
	table  site = iota // a row for each token: the embedding and the head
	inner              // reads the residual stream: q, k, v, gate, up
	output             // writes to it: attention.out, mlp.down
)

// setStds gives every weight the standard deviation of its initial values: those of zero_init zero, the others by the
// scheme that Init names. The parts of a fused weight are matrices of their own.
func (m *Llama) setStds() {
	c := m.Config
	m.embed.Std = c.std(table, c.Vocab, c.Dim, m.embed.Growth)
	if m.head != m.embed && !c.zeroes("head") {
		m.head.Std = c.std(table, c.Vocab, c.Dim, m.head.Growth)
	}
	for _, b := range m.blocks {
		for _, p := range []*nn.Param{b.wqkv, b.wgu} {
			for i, part := range p.Parts {
				p.Parts[i].Std = c.std(inner, part.Rows, p.Value.Cols(), p.Growth)
			}
		}
		if c.zeroes("residual") {
			continue
		}
		for _, p := range []*nn.Param{b.wo, b.wdown} {
			p.Std = c.std(output, p.Value.Rows(), p.Value.Cols(), p.Growth)
		}
	}
}

// std returns the standard deviation of a weight [out, in] that has grown by g.
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
