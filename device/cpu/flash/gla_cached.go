package flash

import (
	"anneal/device"
	"anneal/device/cpu/pool"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// glaCached is one call of Linear.Cached with gates per dimension. The cache holds keys, values and logits since the
// last multiple of 64 tokens, and the states before each 16 of them, so a token reads at most 16 keys, and every
// product has the operands that it has in a pass from the first token. A task is one key-value head.
type glaCached[T vec.Float] struct {
	glaForward[T]
	first  int
	states []T       // [K, 4, E, E]
	kv     matrix[T] // [C, 2K·E]
	known  matrix[T] // [C, K·E]: logits
}

const glaStates = linearChunk / glaChunk

func (l *linear[T]) glaCached(p *pool.Pool, s shape, out, qkv, gates *tensor.Tensor, c *device.Cache, first int) {
	s.check("cached keys and values", &c.KV, linearChunk, 2*s.KV*s.Size)
	s.check("the states", &c.State, glaStates*s.KV*s.Size, s.Size)
	s.check("cached gates", &c.Gates, linearChunk, s.GateCols())
	s.check("gates", gates, s.tokens, s.GateCols())
	var count carver[T]
	newGLATile(&count, l.sizes(&s))
	l.reserve(p.Threads(), count.used)
	j := &l.glaNext
	*j = glaCached[T]{first: first, states: wide[T](&c.State), kv: matrixOf[T](&c.KV), known: matrixOf[T](&c.Gates),
		glaForward: glaForward[T]{out: matrixOf[T](out), glaJob: l.newGLAJob(s, matrixOf[T](qkv), matrixOf[T](gates))}}
	p.Run(s.KV, j)
	*j = glaCached[T]{}
}

// Do computes one task.
func (j *glaCached[T]) Do(worker, kv int) {
	t := newGLATile(&carver[T]{buf: j.l.scratch[worker]}, j.sizes)
	for at := 0; at < j.length; {
		position := j.first + at
		from := position % glaChunk
		n := min(glaChunk-from, j.length-at)
		j.extend(&t, at, position-from, from, from+n, kv)
		at += n
	}
}

// extend computes the outputs of rows from…n of the chunk at a position; row from is token at.
func (j *glaCached[T]) extend(t *glaTile[T], at, position, from, n, kv int) {
	row, new := position%linearChunk, n-from
	keys, values := kv*j.Size, (j.KV+kv)*j.Size
	j.keep(t, &j.kv, row+from, keys, &j.qkv, at, j.keyCol(kv), new)
	j.keep(t, &j.kv, row+from, values, &j.qkv, at, j.valueCol(kv), new)
	j.keep(t, &j.known, row+from, keys, &j.gates, at, keys, new)
	j.load(t, &j.kv, &j.known, row, keys, values, kv, n)
	j.turn(t, t.inner)
	clear(t.state)
	if position > 0 {
		j.l.load(t.state, j.e, j.state(kv, position), j.Size, j.Size, j.Size, 1)
	}
	for g := range j.group {
		j.outputs(t, position == 0, kv*j.group+g, at-from, from, n)
	}
	if n == glaChunk {
		j.pass(t, n)
		j.l.load(j.state(kv, position+n), j.Size, t.state, j.e, j.Size, j.Size, 1)
	}
}

// state returns the cached state before a position, a multiple of 16.
func (j *glaCached[T]) state(kv, position int) []T {
	return j.states[(kv*glaStates+position/glaChunk%glaStates)*j.Size*j.Size:]
}

// keep copies n rows of a head from x to the cache.
func (j *glaCached[T]) keep(t *glaTile[T], to *matrix[T], row, col int, x *matrix[T], at, from, n int) {
	j.l.read(t.o, j.e, x, at, from, n, j.Size)
	j.l.write(to, row, col, n, j.Size, t.o, j.e, 1)
}
