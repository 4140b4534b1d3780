package flash

import (
	"fmt"

	"anneal/device"
	"anneal/device/cpu/pool"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// linearCached is one call of Linear.Cached: linearForward over the tokens of one sequence from first on, starting
// from the state at the last chunk boundary. The cache holds keys and values of the incomplete chunk, so every
// product has the same operands as in a pass from the first token. A task is one key-value head.
type linearCached[T vec.Float] struct {
	linearForward[T]
	first int
	state []T       // [K·(E+1), E]
	kv    matrix[T] // [C, 2K·E]
	faded []T       // [C, K]: logits of gates; nil without them
}

// Cached writes out [n, H·E] from qkv [n, (H+2K)·E] and gates [n, K] or nil; see device.Device.LinearAttentionCached.
func (l *Linear) Cached(out, qkv, gates *tensor.Tensor, c *device.Cache, first int, heads device.Heads) {
	s := shape{Heads: heads, tokens: qkv.Rows(), length: qkv.Rows(), rows: 1, group: heads.Q / heads.KV}
	s.check("qkv", qkv, s.tokens, heads.Cols())
	s.check("out", out, s.tokens, heads.Q*heads.Size)
	if first < 0 {
		panic(fmt.Sprintf("flash: position %d", first))
	}
	if qkv.DType() == tensor.F64 {
		l.f64.cachedOf(l.pool, s, out, qkv, gates, c, first)
	} else {
		l.f32.cachedOf(l.pool, s, out, qkv, gates, c, first)
	}
}

func (l *linear[T]) cached(p *pool.Pool, s shape, out, qkv, gates *tensor.Tensor, c *device.Cache, first int) {
	s.check("cached keys and values", &c.KV, linearChunk, 2*s.KV*s.Size)
	s.check("the state", &c.State, s.KV*(s.Size+1), s.Size)
	if gates != nil {
		s.check("gates", gates, s.tokens, s.KV)
		s.check("cached gates", &c.Gates, linearChunk, s.KV)
	}
	z := l.sizes(&s)
	var count carver[T]
	newLinearTile(&count, z)
	l.reserve(p.Threads(), count.used)
	j := &l.continued
	*j = linearCached[T]{first: first, state: wide[T](&c.State), kv: matrixOf[T](&c.KV),
		linearForward: linearForward[T]{l: l, shape: s, sizes: z, out: matrixOf[T](out), qkv: matrixOf[T](qkv)}}
	if gates != nil {
		j.gates, j.faded = wide[T](gates), wide[T](&c.Gates)
	}
	p.Run(s.KV, j)
	*j = linearCached[T]{}
}

// Do computes one task.
func (j *linearCached[T]) Do(worker, kv int) {
	l, z := j.l, j.sizes
	t := newLinearTile(&carver[T]{buf: l.scratch[worker]}, z)
	state := j.state[kv*(j.Size+1)*j.Size:]
	clear(t.state)
	if j.first >= linearChunk {
		l.load(t.state, z.e, state, j.Size, j.Size+1, j.Size, 1)
	}
	for at := 0; at < j.length; {
		from := (j.first + at) % linearChunk // within the chunk
		n := min(linearChunk-from, j.length-at)
		j.keep(&t, at, from, n, kv)
		j.extend(&t, at, from, n, kv)
		at += n
		if from+n == linearChunk {
			l.pass(&t, linearChunk, z)
		}
	}
	l.load(state, j.Size, t.state, z.e, j.Size+1, j.Size, 1)
}

// keep writes keys, values and gates of n tokens to rows from… of the cache.
func (j *linearCached[T]) keep(t *linearTile[T], at, from, n, kv int) {
	l, z := j.l, j.sizes
	l.read(t.k, z.e, &j.qkv, at, j.keyCol(kv), n, j.Size)
	l.write(&j.kv, from, kv*j.Size, n, j.Size, t.k, z.e, 1)
	l.read(t.k, z.e, &j.qkv, at, j.valueCol(kv), n, j.Size)
	l.write(&j.kv, from, (j.KV+kv)*j.Size, n, j.Size, t.k, z.e, 1)
	if j.faded != nil {
		for i := range n {
			j.faded[(from+i)*j.KV+kv] = j.gates[(at+i)*j.KV+kv]
		}
	}
}

// extend computes the outputs of n tokens, rows from… of their chunk. The cache must hold the keys and values up to
// them.
func (j *linearCached[T]) extend(t *linearTile[T], at, from, n, kv int) {
	l, z := j.l, j.sizes
	c := span{first: j.first+at < linearChunk}
	l.features(t.k, t.slope, &j.kv, 0, kv*j.Size, from+n, z, j.Size)
	l.values(t.v, &j.kv, 0, (j.KV+kv)*j.Size, from+n, z, j.Size)
	l.begin(&t.decay, j.faded, 0, kv, from+n, &j.shape)
	for g := range j.group {
		head := kv*j.group + g
		l.features(t.q[from*z.e:], t.slope, &j.qkv, at, j.queryCol(head), n, z, j.Size)
		for p0 := from / z.panel * z.panel; p0 < from+n; p0 += z.panel {
			p1 := min(p0+z.panel, from+n)
			j.panel(t, c, p0, p1)
			j.finish(t, head, at-from+p0, max(from-p0, 0), p1-p0)
		}
	}
}
