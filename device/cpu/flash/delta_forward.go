package flash

import (
	"anneal/device/cpu/pool"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// deltaForward is one call of Linear.Forward with a delta rule.
type deltaForward[T vec.Float] struct {
	deltaJob[T]
	out  matrix[T]
	norm []T // [H, N]: the divisors; nil if they are not needed
}

func (l *linear[T]) deltaForward(p *pool.Pool, s shape, out, norm, qkv, gates *tensor.Tensor) {
	z := l.sizes(&s)
	var c carver[T]
	newDeltaChunk(&c, z)
	l.reserve(p.Threads(), c.used)
	l.deltaFwd = deltaForward[T]{out: matrixOf[T](out), norm: wide[T](norm),
		deltaJob: deltaJob[T]{l: l, shape: s, sizes: z, qkv: matrixOf[T](qkv), gates: wide[T](gates)}}
	p.Run(s.rows*s.KV, &l.deltaFwd)
	l.deltaFwd = deltaForward[T]{}
}

// Do computes one task.
func (j *deltaForward[T]) Do(worker, task int) {
	t := newDeltaChunk(&carver[T]{buf: j.l.scratch[worker]}, j.sizes)
	row, kv := task/j.KV, task%j.KV
	for from := 0; from < j.length; {
		c := j.l.after(&j.shape, row, from)
		at, n := row*j.length+c.from, c.to-c.from
		if c.first {
			clear(t.state)
		}
		j.load(&t, at, kv, n)
		j.solve(&t, c.first, 0, n)
		for g := range j.group {
			j.outputs(&t, c.first, kv*j.group+g, at, 0, n)
		}
		if !c.last {
			j.pass(&t, n)
		}
		from = c.to
	}
}

// outputs computes the outputs of a head for tokens from…n of a chunk whose first token is row at.
func (j *deltaForward[T]) outputs(t *deltaChunk[T], first bool, head, at, from, n int) {
	l, e := j.l, j.e
	j.unit(t.q[from*e:], t.rq, at+from, j.queryCol(head), n-from)
	j.scores(t.p, t.q, t.kt, from, n)
	j.decay(t.p, t.d, from, n)
	o := t.x[from*e:]
	if !first {
		j.times(t.x, t.q, e, 1, t.state, from, n, j.Size, false)
		l.scaleRows(o, e, n-from, e, t.upTo[from:])
	}
	j.times(t.x, t.p, linearChunk, 1, t.u, from, n, n, !first)
	var norm []T
	if j.norm != nil {
		norm = j.norm[head*j.tokens+at+from:]
	}
	l.normHeads(o, t.rq, norm, n-from, e, j.Size)
	l.write(&j.out, at+from, head*j.Size, n-from, j.Size, o, e, 1)
}
