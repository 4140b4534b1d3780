package flash

import (
	"math"

	"anneal/device/cpu/vec"
)

// decays holds the factors from the gates of one chunk.
type decays[T vec.Float] struct {
	gate  []T // [C]: g; unset without gates
	upTo  []T // [C]: γ_i = g_0 ⋯ g_i
	after []T // [C]: β_j = g_{j+1} ⋯ g_{n−1}
	d     []T // [C/panel, C, panel]: D_ji = g_{j+1} ⋯ g_i, 0 for j > i
	on    bool
}

// tiny is the limit below which a decay counts as 0, well above denormal numbers, which are slow.
const tiny = 0x1p-100

func newDecays[T vec.Float](c *carver[T]) decays[T] {
	return decays[T]{
		gate: c.take(linearChunk), upTo: c.take(linearChunk), after: c.take(linearChunk),
		d: c.take(linearChunk * linearChunk),
	}
}

// begin computes the decays of n tokens; their gates' logits for all key-value heads start at row at. Without gates
// it only clears the flag.
func (l *linear[T]) begin(g *decays[T], logits []T, at, kv, n int, s *shape) {
	g.on = logits != nil
	if !g.on {
		return
	}
	product := T(1)
	for i := range n {
		g.gate[i] = sigmoid(logits[(at+i)*s.KV+kv])
		product = flush(product * g.gate[i])
		g.upTo[i] = product
	}
	product = 1
	for i := n - 1; i >= 0; i-- {
		g.after[i] = product
		product = flush(product * g.gate[i])
	}
	l.between(g, n, product == 0)
}

// between fills D from its last row to its first: row j is row j+1 times g_{j+1}.
func (l *linear[T]) between(g *decays[T], n int, vanishing bool) {
	width := l.tileN
	for p0 := 0; p0 < n; p0 += width {
		d := g.d[p0*linearChunk:]
		p1 := min(p0+width, n)
		clear(d[(p1-1)*width : p1*width])
		for j := p1 - 1; j >= 0; j-- {
			row := d[j*width : (j+1)*width]
			if j+1 < p1 {
				l.vec.Scale(row, d[(j+1)*width:], g.gate[j+1])
			}
			if j >= p0 {
				row[j-p0] = 1
			}
			if vanishing {
				for i, x := range row {
					row[i] = flush(x)
				}
			}
		}
	}
}

// gated reports whether there are gates.
func (g *decays[T]) gated() bool { return g.on }

// whole returns Γ, the product of all n gates.
func (g *decays[T]) whole(n int) T { return g.upTo[n-1] }

func flush[T vec.Float](x T) T {
	if x < tiny {
		return 0
	}
	return x
}

func sigmoid[T vec.Float](x T) T { return T(1 / (1 + math.Exp(-float64(x)))) }
