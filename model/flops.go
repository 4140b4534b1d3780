package model

import (
	sparse "anneal/attention"
	"anneal/nn"
)

// FLOPsPerToken counts the operations of forward and backward for one training token in a sequence of n:
//
//	6 · (parameters used in matrix products) + 6 · n · H·E · Σ density
//
// For frozen parameters the factor is 4. Only the experts that a token uses count. Each matrix parameter costs a
// multiplication and an addition forward and twice that backward. A tied head counts as a product; the lookup of an
// embedding does not. The second term is attention's two products with the n keys in each layer. It counts the share
// of the causal half that the layer's pattern sees.
func (m *Decoder) FLOPsPerToken(n int) float64 {
	return 3*m.ForwardFLOPs(n) - m.frozenFLOPs()
}

// ForwardFLOPs counts the operations of a forward pass alone, for a token in a sequence of n.
func (m *Decoder) ForwardFLOPs(n int) float64 {
	forward := 2 * float64(m.head.Value.Len())
	for _, b := range m.blocks {
		forward += b.forwardFLOPs(n)
	}
	return forward
}

// AttentionFLOPsPerToken is the second term of FLOPsPerToken.
func (m *Decoder) AttentionFLOPsPerToken(n int) (sum float64) {
	for _, b := range m.blocks {
		sum += 3 * b.attention.flops(n)
	}
	return sum
}

// BatchForwardFLOPs is ForwardFLOPs of a batch, with the pairs that BatchFLOPs counts.
func (m *Decoder) BatchForwardFLOPs(b *Batch) float64 {
	start := b.Host.Start
	forward := 2 * float64(m.head.Value.Len()) * float64(len(start))
	for i, l := range m.blocks {
		forward += l.matrixFLOPs()*float64(len(start)) + m.attentionFLOPs(i, start, b.T)
	}
	return forward
}

// LayerFLOPs counts forward and backward of every layer for a token of the longest sequence, including recomputation.
// The last layer includes the head. Use it to cut a model into stages of equal cost.
func (m *Decoder) LayerFLOPs() []float64 {
	list := make([]float64, len(m.blocks))
	for i, b := range m.blocks {
		forward := b.forwardFLOPs(m.Config.Context)
		if list[i] = 3 * forward; i < m.Config.Recompute.Whole {
			list[i] += forward
		}
	}
	list[len(list)-1] += 6 * float64(m.head.Region.Len())
	return list
}

// BatchFLOPs counts forward and backward of a batch in training. Unlike FLOPsPerToken, it counts in attention only
// pairs of a query and a key in the same document.
func (m *Decoder) BatchFLOPs(b *Batch) float64 {
	return 3*m.BatchForwardFLOPs(b) - m.frozenFLOPs()*float64(len(b.Host.Start))
}

// attentionFLOPs counts the products of a layer's attention in rows of t tokens. Pairs are counted once for layers
// with the same pattern.
func (m *Decoder) attentionFLOPs(layer int, start []int32, t int) float64 {
	a := m.blocks[layer].attention
	if a.linear {
		return a.linearBatchFLOPs(start, t)
	}
	first := 0
	for m.blocks[first].attention.seen != a.seen || m.blocks[first].attention.linear {
		first++
	}
	if first == layer {
		a.seen.pairs = sparse.Pairs(a.seen.layout, start, t, a.heads.Q)
	}
	flops := 4 * float64(a.seen.pairs) * float64(a.heads.Size)
	if a.global != nil {
		flops += a.globalFLOPs(start, t)
	}
	return flops
}

// RecomputedFLOPsPerToken counts the recomputation in backward: the forward pass of layers that are recomputed whole,
// except the last product of each segment, whose result is not read; and the fused projection and attention of layers
// that drop only these. FLOPsPerToken does not include it.
func (m *Decoder) RecomputedFLOPsPerToken(n int) float64 {
	return m.recomputedFLOPs(m.Config.Recompute, n)
}

func (m *Decoder) recomputedFLOPs(l Layout, n int) float64 {
	sum := 0.0
	for i, layer := range m.blocks[:l.Whole+l.Attention] {
		switch {
		case i >= l.Whole:
			sum += layer.attention.recomputeFLOPs(n)
		case (i+1)%l.Segment == 0 || i+1 == l.Whole:
			sum += layer.forwardFLOPs(n) - layer.unreadFLOPs()
		default:
			sum += layer.forwardFLOPs(n)
		}
	}
	return sum
}

// forwardFLOPs counts the operations of a block for one token in a sequence of n.
func (l *block) forwardFLOPs(n int) float64 {
	return l.attention.flops(n) + l.matrixFLOPs()
}

// matrixFLOPs counts the products of one token with the matrices of a block.
func (l *block) matrixFLOPs() (sum float64) {
	for _, p := range l.params {
		if p.Role == nn.Matrix {
			sum += 2 * p.Active() * float64(p.Region.Len()) / float64(p.Len())
		}
	}
	return sum
}

// unreadFLOPs counts the block's last product, if its result is only added to the stream.
func (l *block) unreadFLOPs() float64 {
	last := l.branches[len(l.branches)-1]
	if last.after != nil || last.out == nil {
		return 0
	}
	return 2 * float64(last.out.Value.Len())
}

// flops counts the two products with the visible keys of a token in a sequence of n, on average at most half of them.
func (a *attention) flops(n int) float64 {
	if a.linear {
		return a.linearFLOPs(n)
	}
	if n == 0 {
		return 0
	}
	flops := 2 * a.seen.density(n) * float64(n) * float64(a.heads.Q*a.heads.Size)
	if a.global != nil {
		g := float64(min(a.global.N, n))
		flops += 2 * (g + 1) * g / float64(n) * float64(a.heads.Q*a.heads.Size)
	}
	return flops
}

// recomputeFLOPs counts the operations of recomputing the attention, including its projections.
func (a *attention) recomputeFLOPs(n int) float64 {
	sum := a.flops(n) + 2*float64(a.wqkv.Value.Len())
	if a.global != nil {
		sum += 2 * float64(a.global.Weight.Value.Len()) * float64(a.global.N) / float64(n)
	}
	if a.latent != nil {
		sum += 2 * float64(a.latent.up.Value.Len())
	}
	if a.gate != nil {
		sum += 2 * float64(a.gate.Value.Len())
	}
	if a.gateIn != nil {
		sum += 2 * float64(a.gateIn.Value.Len())
	}
	return sum
}
