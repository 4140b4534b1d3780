package autograd

import "anneal/device"

// A Cache holds the keys, values and states of the tokens before the batch, for generation.
type Cache struct {
	First  int            // position of the batch's first token
	Layers []device.Cache // one per layer
}

// AttentionCached is Attention for a batch that continues the sequence in layer number layer of c. It is not
// recorded.
func (t *Tape) AttentionCached(qkv *Var, heads device.Heads, mask device.Mask, c *Cache, layer int) *Var {
	in := t.value(qkv)
	out := t.wrap(t.temp.New(t.Types.Activation, in.Rows(), heads.Q*heads.Size))
	t.Device.AttentionCached(&out.Value, in, &c.Layers[layer], c.First, heads, mask)
	return out
}
