package flash

import (
	"fmt"

	"anneal/device"
	"anneal/device/cpu/pool"
	"anneal/device/cpu/vec"
	"anneal/internal/isa"
	"anneal/tensor"
)

// A Linear computes linear attention (Katharopoulos et al. 2020, arXiv 2006.16236) on the workers of a pool, in time
// linear in the length of a row: a matrix holds the contribution of all earlier keys and values to later queries.
//
//	φ(x) = elu(x) + 1                     positive; e^x below 0, x + 1 above
//	S_i = g_i·S_{i−1} + φ(k_i) v_iᵀ       [E, E]
//	z_i = g_i·z_{i−1} + φ(k_i)            [E]
//	o_i = φ(q_i)·S_i / n_i,  n_i = φ(q_i)·z_i + 10⁻⁶
//
// with g = 1, or with gates g = sigmoid(a): one number per token and key-value head, as in gated linear attention
// (Yang et al. 2023, arXiv 2312.06635) with a scalar gate. Gates decay S and z alike, so an output remains a weighted
// mean of values.
//
// It processes a row in chunks of C = 64 tokens. Scores inside a chunk are computed as in attention. Earlier tokens
// contribute through the state, one matrix: T = [Sᵀ; zᵀ] [E+1, E], with a last element 1 appended to values. Outputs
// are computed transposed, so that the row of z gives all denominators:
//
//	P [keys, queries]   = (K̂ · Q̂ᵀ) ∘ D           D_ji = g_{j+1} ⋯ g_i for j ≤ i, 0 for later keys
//	[O n]ᵀ [E+1, C]     = T · Q̂ᵀ ∘ γ + [V 1]ᵀ · P   γ_i = the gates of the chunk up to i
//	T                   = Γ·T + [V 1]ᵀ · (β ∘ K̂)   β_j = the gates after j, Γ = all of them
//
// The backward pass is two independent sweeps: forward with T for the gradient of queries, and in reverse with the
// gradient of T for those of keys, values and gates. It keeps one denominator per row and head; scratch memory is
// O(C² + E²) per worker. States, sums and denominators are F32 (F64 in the reference mode) for every storage.
//
// A document starts a new chunk and clears the state, so its results have the same bits as in a row of its own.
type Linear struct {
	pool *pool.Pool
	f32  linear[float32] // BF16, F16 and F32 storage
	f64  linear[float64] // the reference mode
}

const (
	linearChunk = device.LinearChunk // C
	linearEps   = 1e-6               // of the denominators
)

// NewLinear returns linear attention with the kernels of tier on the workers of p.
func NewLinear(tier isa.Tier, p *pool.Pool) *Linear {
	return &Linear{
		pool: p,
		f32: linear[float32]{chunk: linearChunk, runner: runner[float32]{kernels: kernels32(tier)},
			vec: vec.Float32(tier)},
		f64: linear[float64]{chunk: linearChunk, runner: runner[float64]{kernels: portable[float64]()},
			vec: vec.Float64()},
	}
}

// LinearScratch returns the ScratchBytes after linear attention forward and backward, for a tier, a number of workers,
// a storage and the length of a row.
func LinearScratch(tier isa.Tier, workers int, storage tensor.DType, length int, heads device.Heads) int {
	l, s := NewLinear(tier, nil), shape{Heads: heads, length: length}
	if storage == tensor.F64 {
		return l.f64.predict(&s, workers)
	}
	return l.f32.predict(&s, workers)
}

// ScratchBytes returns the scratch memory of the workers.
func (l *Linear) ScratchBytes() int { return l.f32.bytes() + l.f64.bytes() }

// Close frees the scratch memory.
func (l *Linear) Close() {
	l.f32.free()
	l.f64.free()
}

// Forward writes out [N, H·E] and norm [H, N] from qkv [N, (H+2K)·E] and gates [N, K], which may be nil; see
// device.Device.LinearAttention.
func (l *Linear) Forward(out, norm, qkv, gates *tensor.Tensor, heads device.Heads, mask device.Mask) {
	s := newLinearShape(qkv, norm, gates, heads, mask)
	s.check("out", out, s.tokens, heads.Q*heads.Size)
	if qkv.DType() == tensor.F64 {
		l.f64.forwardOf(l.pool, s, out, norm, qkv, gates)
	} else {
		l.f32.forwardOf(l.pool, s, out, norm, qkv, gates)
	}
}

// Backward writes dqkv [N, (H+2K)·E] and, unless gates is nil, dgates [N, K] from dout [N, H·E] and the arguments of
// Forward.
func (l *Linear) Backward(dqkv, dgates, dout, out, norm, qkv, gates *tensor.Tensor, heads device.Heads,
	mask device.Mask) {
	s := newLinearShape(qkv, norm, gates, heads, mask)
	s.check("out", out, s.tokens, heads.Q*heads.Size)
	s.check("dout", dout, s.tokens, heads.Q*heads.Size)
	s.check("dqkv", dqkv, s.tokens, heads.Cols())
	if gates != nil {
		s.check("dgates", dgates, s.tokens, heads.GateCols())
	}
	if qkv.DType() == tensor.F64 {
		l.f64.backwardOf(l.pool, s, dqkv, dgates, dout, out, norm, qkv, gates)
	} else {
		l.f32.backwardOf(l.pool, s, dqkv, dgates, dout, out, norm, qkv, gates)
	}
}

func newLinearShape(qkv, norm, gates *tensor.Tensor, heads device.Heads, mask device.Mask) shape {
	if mask.Layout != nil || mask.Slopes != nil {
		panic("flash: linear attention supports neither patterns nor ALiBi")
	}
	s := newShape(qkv, norm, heads, mask)
	if gates != nil {
		s.check("gates", gates, s.tokens, heads.GateCols())
	} else if heads.Rule != device.AddRule {
		panic("flash: the rule needs gates")
	}
	return s
}

// linear is the state shared by calls with arithmetic in T.
type linear[T vec.Float] struct {
	runner[T]
	vec   vec.Table[T]
	chunk int // linearChunk; smaller only in tests
	fwd   linearForward[T]
	bwd   linearBackward[T]

	continued linearCached[T]

	ruleJobs[T]
}

// span is a chunk: tokens from…to of a row, and whether it is at the beginning or end of its document.
type span struct {
	from, to    int
	first, last bool
}

// after returns the chunk of a row that starts at token from.
func (l *linear[T]) after(s *shape, row, from int) span {
	c := span{from: from, to: min(from+l.chunk, s.length), first: from == 0}
	if s.start == nil {
		c.last = c.to == s.length
		return c
	}
	start := s.start[row*s.length : (row+1)*s.length]
	c.first = int(start[from]) == from
	for i := from + 1; i < c.to; i++ {
		if int(start[i]) == i {
			c.to = i
		} else if start[i] != start[from] {
			panic(fmt.Sprintf("flash: token %d of a row sees keys from %d, the one before from %d: not documents",
				i, start[i], start[from]))
		}
	}
	c.last = c.to == s.length || int(start[c.to]) == c.to
	return c
}

// before returns the chunk of a row that ends before token to.
func (l *linear[T]) before(s *shape, row, to int) span {
	begin := 0
	if s.start != nil {
		begin = int(s.start[row*s.length+to-1])
	}
	return l.after(s, row, begin+(to-1-begin)/l.chunk*l.chunk)
}

// sizes holds the sizes of scratch matrices.
type sizes struct {
	panel int // columns of the microkernel
	e     int // E rounded up to whole panels
	v     int // E + 1 rounded up to whole panels: the stride of values with the appended 1
	m     int // E + 1 rounded up to whole rows of the microkernel
}

func (l *linear[T]) sizes(s *shape) sizes {
	return sizes{
		panel: l.tileN, e: roundUp(s.Size, l.tileN), v: roundUp(s.Size+1, l.tileN), m: roundUp(s.Size+1, l.tileM),
	}
}

// features reads n heads of E elements and computes φ and its slope, [n, e], with zeros beyond E.
func (l *linear[T]) features(phi, slope []T, x *matrix[T], at, col, n int, z sizes, size int) {
	l.read(phi, z.e, x, at, col, n, size)
	if size == z.e {
		l.vec.ELU1(phi[:n*z.e], slope, phi)
		return
	}
	for r := range n {
		line := phi[r*z.e : r*z.e+size]
		l.vec.ELU1(line, slope[r*z.e:], line)
	}
}

// values reads n values and appends 1 to each.
func (l *linear[T]) values(v []T, x *matrix[T], at, col, n int, z sizes, size int) {
	l.read(v, z.v, x, at, col, n, size)
	for r := range n {
		v[r*z.v+size] = 1
	}
}

// weigh multiplies a panel s [keys, panel], of queries from p0 of the chunk on, by D. Without gates it only hides
// later keys.
func (l *linear[T]) weigh(s []T, g *decays[T], p0, keys int, z sizes) {
	if g.gated() {
		s = s[:keys*z.panel]
		l.vec.Mul(s, s, g.d[p0*linearChunk:])
		return
	}
	for j := p0 + 1; j < keys; j++ {
		clear(s[j*z.panel : j*z.panel+j-p0])
	}
}

// absorb adds [V 1]ᵀ·K̂ of n tokens to the state.
func (l *linear[T]) absorb(state, v, k []T, n int, z sizes) {
	for c := 0; c < z.e; c += z.panel {
		l.mul(state[c:], z.e, v, 1, z.v, k[c:], z.e, z.m, n, true)
	}
}
