package flash

import (
	"anneal/device/cpu/pool"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// glaForward is one call of Linear.Forward with gates per dimension.
type glaForward[T vec.Float] struct {
	glaJob[T]
	out  matrix[T]
	norm []T // [H, N]: the divisors; nil if they are not needed
}

func (l *linear[T]) glaForward(p *pool.Pool, s shape, out, norm, qkv, gates *tensor.Tensor) {
	var c carver[T]
	newGLATile(&c, l.sizes(&s))
	l.reserve(p.Threads(), c.used)
	l.glaFwd = glaForward[T]{out: matrixOf[T](out), norm: wide[T](norm),
		glaJob: l.newGLAJob(s, matrixOf[T](qkv), matrixOf[T](gates))}
	p.Run(s.rows*s.KV, &l.glaFwd)
	l.glaFwd = glaForward[T]{}
}

// Do computes one task.
func (j *glaForward[T]) Do(worker, task int) {
	t := newGLATile(&carver[T]{buf: j.l.scratch[worker]}, j.sizes)
	row, kv := task/j.KV, task%j.KV
	for from := 0; from < j.length; {
		c := j.l.after(&j.shape, row, from)
		c.pieces(false, func(p span) { j.chunk(&t, p, row, kv) })
		from = c.to
	}
}

// chunk computes the outputs of one chunk and adds it to the state.
func (j *glaForward[T]) chunk(t *glaTile[T], c span, row, kv int) {
	at, n := row*j.length+c.from, c.to-c.from
	if c.first {
		clear(t.state)
	}
	j.load(t, &j.qkv, &j.gates, at, j.keyCol(kv), j.valueCol(kv), kv, n)
	j.turn(t, t.inner)
	for g := range j.group {
		j.outputs(t, c.first, kv*j.group+g, at, 0, n)
	}
	if !c.last {
		j.pass(t, n)
	}
}

// outputs computes the outputs of a head for tokens from…n of a chunk whose first token is row at.
func (j *glaForward[T]) outputs(t *glaTile[T], first bool, head, at, from, n int) {
	j.query(t, at, head, from, n)
	j.scores(t, t.q, from, n)
	if !first {
		j.times(t.o, t.q, j.e, 1, t.state, from, n, j.Size, false)
	}
	j.times(t.o, t.p, j.wide, 1, t.v, from, n, n, !first)
	var norm []T
	if j.norm != nil {
		norm = j.norm[head*j.tokens+at+from:]
	}
	o := t.o[from*j.e:]
	j.l.normHeads(o, t.f, norm, n-from, j.e, j.Size)
	j.l.write(&j.out, at+from, head*j.Size, n-from, j.Size, o, j.e, 1)
}
