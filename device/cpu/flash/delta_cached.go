package flash

import (
	"anneal/device"
	"anneal/device/cpu/pool"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// deltaCached is one call of Linear.Cached with a delta rule. The cache holds the state at the last chunk boundary, and
// K̂ and U of the tokens since, so that a token costs O(E·(E + C)), and every product has the operands that it has in a
// pass from the first token. A task is one key-value head.
type deltaCached[T vec.Float] struct {
	deltaForward[T]
	first int
	state []T // [K·(E+2C), E]: M, K̂ and U of each head
	known []T // [C, K] or [C, 2K]: logits of gates
}

func (l *linear[T]) deltaCached(p *pool.Pool, s shape, out, qkv, gates *tensor.Tensor, c *device.Cache, first int) {
	s.check("the state", &c.State, s.KV*(s.Size+2*linearChunk), s.Size)
	s.check("cached gates", &c.Gates, linearChunk, s.GateCols())
	s.check("gates", gates, s.tokens, s.GateCols())
	z := l.sizes(&s)
	var count carver[T]
	newDeltaChunk(&count, z)
	l.reserve(p.Threads(), count.used)
	j := &l.deltaNext
	j.first, j.state, j.known, j.out = first, wide[T](&c.State), wide[T](&c.Gates), matrixOf[T](out)
	j.deltaJob = deltaJob[T]{l: l, shape: s, sizes: z, qkv: matrixOf[T](qkv), gates: wide[T](gates)}
	p.Run(s.KV, j)
	*j = deltaCached[T]{}
}

// Do computes one task.
func (j *deltaCached[T]) Do(worker, kv int) {
	t := newDeltaChunk(&carver[T]{buf: j.l.scratch[worker]}, j.sizes)
	state := j.state[kv*(j.Size+2*linearChunk)*j.Size:]
	keys, values := state[j.Size*j.Size:], state[(j.Size+linearChunk)*j.Size:]
	clear(t.state)
	if j.first >= linearChunk {
		j.l.load(t.state, j.e, state, j.Size, j.Size, j.Size, 1)
	}
	if known := j.first % linearChunk; known > 0 {
		j.recall(t.k, keys, known)
		j.recall(t.u, values, known)
	}
	for at := 0; at < j.length; {
		from := (j.first + at) % linearChunk // within the chunk
		n := min(linearChunk-from, j.length-at)
		j.extend(&t, at, from, n, kv)
		j.l.load(keys[from*j.Size:], j.Size, t.k[from*j.e:], j.e, n, j.Size, 1)
		j.l.load(values[from*j.Size:], j.Size, t.u[from*j.e:], j.e, n, j.Size, 1)
		at += n
		if from+n == linearChunk {
			j.pass(&t, linearChunk)
		}
	}
	j.l.load(state, j.Size, t.state, j.e, j.Size, j.Size, 1)
}

// recall reads the first n rows of a cached matrix [C, E] to x [C, e].
func (j *deltaCached[T]) recall(x, cached []T, n int) {
	clear(x[:n*j.e])
	j.l.load(x, j.e, cached, j.Size, n, j.Size, 1)
}

// extend computes U and the outputs of n tokens, rows from… of their chunk.
func (j *deltaCached[T]) extend(t *deltaChunk[T], at, from, n, kv int) {
	width := j.GateCols() / j.KV
	for i := range n {
		col := kv * width
		copy(j.known[(from+i)*j.KV*width+col:][:width], j.gates[(at+i)*j.KV*width+col:])
	}
	first := j.first+at < linearChunk
	j.unit(t.k[from*j.e:], t.rk, at, j.keyCol(kv), n)
	j.l.read(t.y[from*j.e:], j.e, &j.qkv, at, j.valueCol(kv), n, j.Size)
	j.begin(t, j.known, kv, from+n)
	j.products(t, from, from+n)
	j.solve(t, first, from, from+n)
	for g := range j.group {
		j.outputs(t, first, kv*j.group+g, at-from, from, from+n)
	}
}
