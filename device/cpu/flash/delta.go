package flash

import (
	"math"

	"anneal/device/cpu/vec"
)

// The delta rule (DeltaNet; Schlag et al. 2021, arXiv 2102.11174) writes to a key the difference between the new value
// and the stored one, so that the state forgets the key's old value. It runs in chunks, in the WY form of Yang et al.
// 2024 (arXiv 2406.06484), with the decay of Gated DeltaNet (Yang et al. 2024, arXiv 2412.06464). For unit vectors q̂
// and k̂, with M = Sᵀ [E, E]:
//
//	u_i = β_i·(v_i − α_i·M_{i−1}ᵀ·k̂_i)
//	M_i = α_i·M_{i−1} + k̂_i·u_iᵀ
//	o_i = M_iᵀ·q̂_i, divided by √(mean(o_i²) + 10⁻⁶)
//
// In a chunk of C = 64 tokens that starts from M, with γ, D, Γ and the decays a after a token as in linear attention,
//
//	(I + β∘L)·U = β ∘ (V − γ∘(K̂·M))    L = (K̂·K̂ᵀ) ∘ D, strictly lower triangular
//	O           = γ∘(Q̂·M) + P·U        P = (Q̂·K̂ᵀ) ∘ D
//	M           = Γ·M + K̂ᵀ·(a∘U)
//
// delta_solve.go solves the triangular system.
//
// deltaJob is the state that the three kernels share. A task is one row of the batch and one key-value head.
type deltaJob[T vec.Float] struct {
	l *linear[T]
	shape
	sizes
	qkv   matrix[T]
	gates []T // [N, K] or [N, 2K]: logits of β, or of β and α for each head
}

const deltaEps = 1e-6 // of the lengths of queries and keys

// deltaChunk is a worker's scratch memory for a chunk; e is that of sizes.
type deltaChunk[T vec.Float] struct {
	state  []T // [e, e]: M
	k, q   []T // [C, e]: K̂, Q̂
	kt     []T // [C/panel, e, panel]: K̂ᵀ
	y, u   []T // [C, e]: V, then U/β; U
	x      []T // [C, e]: products with the state, and outputs
	l, p   []T // [C, C]: −L, P
	d      []T // [C, C]: D, whose upper triangle is unset
	rk, rq []T // [C]: 1/|k|, 1/|q|
	beta   []T // [C]
	gate   []T // [C]: α
	upTo   []T // [C]: γ
	after  []T // [C]: a
}

func newDeltaChunk[T vec.Float](c *carver[T], z sizes) deltaChunk[T] {
	rows := func() []T { return c.take(linearChunk * z.e) }
	square := func() []T { return c.take(linearChunk * linearChunk) }
	line := func() []T { return c.take(linearChunk) }
	return deltaChunk[T]{
		state: c.take(z.e * z.e), k: rows(), q: rows(), kt: rows(), y: rows(), u: rows(), x: rows(),
		l: square(), p: square(), d: square(),
		rk: line(), rq: line(), beta: line(), gate: line(), upTo: line(), after: line(),
	}
}

// load reads n tokens whose first is row at, and prepares D, K̂ᵀ and −L.
func (j *deltaJob[T]) load(t *deltaChunk[T], at, kv, n int) {
	j.unit(t.k, t.rk, at, j.keyCol(kv), n)
	j.l.read(t.y, j.e, &j.qkv, at, j.valueCol(kv), n, j.Size)
	j.begin(t, j.gates[at*j.GateCols():], kv, n)
	j.products(t, 0, n)
}

// unit reads n heads, divides them by their lengths and stores the factors in r.
func (j *deltaJob[T]) unit(x, r []T, at, col, n int) {
	l := j.l
	l.read(x, j.e, &j.qkv, at, col, n, j.Size)
	l.dot(r, x, x, j.e, n, j.e)
	for i, square := range r[:n] {
		r[i] = T(1 / math.Sqrt(float64(square)+deltaEps))
	}
	l.scaleRows(x, j.e, n, j.e, r)
}

// begin computes β and the decays of the first n tokens of a chunk from their logits.
func (j *deltaJob[T]) begin(t *deltaChunk[T], logits []T, kv, n int) {
	cols := j.GateCols()
	width := cols / j.KV
	product := T(1)
	for i := range n {
		own := logits[i*cols+kv*width:]
		t.beta[i], t.gate[i] = sigmoid(own[0]), 1
		if width == 2 {
			t.gate[i] = sigmoid(own[1])
		}
		product = flush(product * t.gate[i])
		t.upTo[i] = product
		row := t.d[i*linearChunk:][:i+1]
		if row[i] = 1; i > 0 {
			j.l.vec.Scale(row[:i], t.d[(i-1)*linearChunk:], t.gate[i])
		}
		if product == 0 {
			for s, x := range row {
				row[s] = flush(x)
			}
		}
	}
	copy(t.after, t.d[(n-1)*linearChunk:][:n])
}

// products computes K̂ᵀ of the first n tokens and rows from… of −L.
func (j *deltaJob[T]) products(t *deltaChunk[T], from, n int) {
	clear(t.k[n*j.e:])
	for c := 0; c < n; c += j.panel {
		j.l.transpose(t.kt[c*j.e:], t.k[c*j.e:], j.e, j.e)
	}
	j.scores(t.l, t.k, t.kt, from, n)
	j.decay(t.l, t.d, from, n)
	j.negate(t.l, from, n)
}

// scores computes rows from…n of a·bᵀ [C, C] up to the diagonal; bt has the panels of bᵀ.
func (j *deltaJob[T]) scores(s, a, bt []T, from, n int) {
	for c := 0; c < n; c += j.panel {
		first := max(from, c) / j.l.tileM * j.l.tileM
		if first < n {
			j.l.mul(s[first*linearChunk+c:], linearChunk, a[first*j.e:], j.e, 1, bt[c*j.e:], j.panel,
				roundUp(n-first, j.l.tileM), j.Size, false)
		}
	}
}

// decay multiplies rows from…n of s by D and clears them after the diagonal.
func (j *deltaJob[T]) decay(s, d []T, from, n int) {
	for i := from; i < n; i++ {
		row := s[i*linearChunk:][:linearChunk]
		j.l.vec.Mul(row[:i+1], row, d[i*linearChunk:])
		clear(row[i+1:])
	}
}

// negate negates rows from…n of s and clears their diagonal.
func (j *deltaJob[T]) negate(s []T, from, n int) {
	for i := from; i < n; i++ {
		row := s[i*linearChunk:][:linearChunk]
		j.l.vec.Scale(row[:i], row, -1)
		row[i] = 0
	}
}

// times computes rows from…n of dst [C, e] = a·b, or adds to them; a has rows of stride rs and words of stride cs, b is
// [depth, e].
func (j *deltaJob[T]) times(dst, a []T, rs, cs int, b []T, from, n, depth int, add bool) {
	first := from / j.l.tileM * j.l.tileM
	for c := 0; c < j.e; c += j.panel {
		j.l.mul(dst[first*j.e+c:], j.e, a[first*rs:], rs, cs, b[c:], j.e, roundUp(n-first, j.l.tileM), depth, add)
	}
}

// pass adds the n tokens of a chunk to the state.
func (j *deltaJob[T]) pass(t *deltaChunk[T], n int) {
	copy(t.x, t.u[:n*j.e])
	j.l.scaleRows(t.x, j.e, n, j.e, t.after)
	j.l.vec.Scale(t.state, t.state, t.upTo[n-1])
	j.times(t.state, t.k, 1, j.e, t.x, 0, j.e, n, true)
}
