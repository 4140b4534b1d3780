package flash

import (
	"math"

	"anneal/device"
	"anneal/device/cpu/vec"
)

// Gated linear attention with a gate per key dimension (GLA; Yang et al. 2023, arXiv 2312.06635), with M = Sᵀ [E, E]:
//
//	M_i = diag(α_i)·M_{i−1} + k_i·v_iᵀ       α = sigmoid(a)^(1/16), E of them for each token
//	o_i = M_iᵀ·q_i/√E, divided by √(mean(o_i²) + 10⁻⁶)
//
// With γ_i, the product of the gates of a chunk up to token i, and a_i, that of those after it, a chunk gives
//
//	Q̃ = Q∘γ/√E    K̃ = K/γ    K' = K∘a
//	O = Q̃·M + P·V             P = Q̃·K̃ᵀ up to the diagonal
//	M = diag(γ_last)·M + K'ᵀ·V
//
// Only K̃ can be large. Logits are at least −64, that is α ≥ e⁻⁴, so that in a chunk of 16 tokens K̃ stays below e⁶⁴·K
// and F32 holds it. On a GPU longer chunks, split again into such pieces, keep more units busy; here a worker
// processes chunks one by one, and short ones need fewer products. Four square roots make x^(1/16).
//
// glaJob is the state that the three kernels share. A task is one row of the batch and one key-value head.
type glaJob[T vec.Float] struct {
	l *linear[T]
	shape
	sizes
	wide       int // glaChunk rounded up to whole panels
	qkv, gates matrix[T]
}

const (
	glaChunk = device.VectorGateChunk
	glaLeast = -64 // logit
)

// glaTile is a worker's scratch memory; rows are those of a chunk.
type glaTile[T vec.Float] struct {
	state     []T // [e, e]: M, or its gradient
	q, k, v   []T // [wide, e]: Q̃, K, V
	inner     []T // [wide, e]: K̃
	outer     []T // [wide, e]: K'
	turned    []T // [wide/panel, e, panel]: K̃ᵀ, or Vᵀ
	alpha     []T // [16, e]
	power     []T // [16, e]: e^−a for logits a, 0 below the least
	inverse   []T // [16, e]: 1/γ
	upTo, aft []T // [16, e]: γ, a
	p         []T // [16, wide]
	o         []T // [16, e]
	f         []T // [16]
}

func newGLATile[T vec.Float](c *carver[T], z sizes) glaTile[T] {
	broad, narrow := roundUp(glaChunk, z.panel)*z.e, glaChunk*z.e
	return glaTile[T]{
		state: c.take(z.e * z.e), q: c.take(broad), k: c.take(broad), v: c.take(broad), inner: c.take(broad),
		outer: c.take(broad), turned: c.take(broad), alpha: c.take(narrow), power: c.take(narrow),
		inverse: c.take(narrow),
		upTo:    c.take(narrow), aft: c.take(narrow), p: c.take(glaChunk * roundUp(glaChunk, z.panel)),
		o: c.take(narrow), f: c.take(glaChunk),
	}
}

func (l *linear[T]) newGLAJob(s shape, qkv, gates matrix[T]) glaJob[T] {
	z := l.sizes(&s)
	return glaJob[T]{l: l, shape: s, sizes: z, wide: roundUp(glaChunk, z.panel), qkv: qkv, gates: gates}
}

// pieces calls f with the chunks of 16 tokens of a span, the last one first if back is set.
func (c span) pieces(back bool, f func(p span)) {
	count := (c.to - c.from + glaChunk - 1) / glaChunk
	for i := range count {
		if back {
			i = count - 1 - i
		}
		from := c.from + i*glaChunk
		to := min(from+glaChunk, c.to)
		f(span{from: from, to: to, first: c.first && i == 0, last: c.last && to == c.to})
	}
}

// load reads keys, values and gates of n tokens from x and gates, whose first row is at.
func (j *glaJob[T]) load(t *glaTile[T], x, gates *matrix[T], at, keys, values, kv, n int) {
	l, e := j.l, j.e
	l.read(t.k, e, x, at, keys, n, j.Size)
	l.read(t.v, e, x, at, values, n, j.Size)
	l.read(t.alpha, e, gates, at, kv*j.Size, n, j.Size)
	clear(t.k[n*e:])
	clear(t.v[n*e:])
	j.open(t, n)
	l.vec.Mul(t.outer[:n*e], t.k, t.aft)
	l.vec.Mul(t.inner[:n*e], t.k, t.inverse)
	clear(t.inner[n*e:])
}

// open computes α and the decays from logits, and stores e to the power of minus the logits for slopes.
func (j *glaJob[T]) open(t *glaTile[T], n int) {
	e, size := j.e, n*j.e
	top := T(math.Exp(-glaLeast))
	j.l.vec.Scale(t.power[:size], t.alpha, -1)
	j.l.vec.ExpSum(t.power[:size], t.power, 0)
	alpha := t.alpha[:size]
	for i, x := range t.power[:size] {
		if x > top {
			x, t.power[i] = top, 0 // no slope
		}
		r := root(root(root(root(1 + x))))
		alpha[i], t.inverse[i] = 1/r, r
	}
	copy(t.upTo[:e], t.alpha)
	for i := e; i < size; i += e {
		j.l.vec.Mul(t.upTo[i:i+e], t.upTo[i-e:], t.alpha[i:])
		j.l.vec.Mul(t.inverse[i:i+e], t.inverse[i-e:i], t.inverse[i:])
	}
	last := t.aft[(n-1)*e : size]
	for c := range last {
		last[c] = 1
	}
	for i := n - 2; i >= 0; i-- {
		j.l.vec.Mul(t.aft[i*e:(i+1)*e], t.aft[(i+1)*e:], t.alpha[(i+1)*e:])
	}
}

func root[T vec.Float](x T) T { return T(math.Sqrt(float64(x))) }

// turn computes the panels of the transpose of x.
func (j *glaJob[T]) turn(t *glaTile[T], x []T) {
	for c := 0; c < j.wide; c += j.panel {
		j.l.transpose(t.turned[c*j.e:], x[c*j.e:], j.e, j.e)
	}
}

// query reads rows from…n of Q of a head, whose first row is at, and computes Q̃.
func (j *glaJob[T]) query(t *glaTile[T], at, head, from, n int) {
	q := t.q[from*j.e : n*j.e]
	j.l.read(q, j.e, &j.qkv, at+from, j.queryCol(head), n-from, j.Size)
	j.l.vec.Mul(q, q, t.upTo[from*j.e:])
	j.l.vec.Scale(q, q, T(1/math.Sqrt(float64(j.Size))))
}

// scores computes rows from…n of a·bᵀ up to the diagonal, where turned has bᵀ.
func (j *glaJob[T]) scores(t *glaTile[T], a []T, from, n int) {
	first := from / j.l.tileM * j.l.tileM
	for c := 0; c < j.wide; c += j.panel {
		j.l.mul(t.p[first*j.wide+c:], j.wide, a[first*j.e:], j.e, 1, t.turned[c*j.e:], j.panel,
			roundUp(n-first, j.l.tileM), j.Size, false)
	}
	for i := from; i < n; i++ {
		clear(t.p[i*j.wide+i+1 : (i+1)*j.wide])
	}
}

// times computes rows from…n of dst = a·b, or adds to them; see deltaJob.times.
func (j *glaJob[T]) times(dst, a []T, rs, cs int, b []T, from, n, depth int, add bool) {
	first := from / j.l.tileM * j.l.tileM
	for c := 0; c < j.e; c += j.panel {
		j.l.mul(dst[first*j.e+c:], j.e, a[first*rs:], rs, cs, b[c:], j.e, roundUp(n-first, j.l.tileM), depth, add)
	}
}

// pass adds the n tokens of a chunk to the state.
func (j *glaJob[T]) pass(t *glaTile[T], n int) {
	j.l.scaleRows(t.state, j.e, j.e, j.e, t.upTo[(n-1)*j.e:])
	j.times(t.state, t.outer, 1, j.e, t.v, 0, j.e, n, true)
}
