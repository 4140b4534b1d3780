package flash

// The triangular system of a chunk, (I + β∘L)·U = β∘R, is solved row by row within blocks of 16 tokens, and by matrix
// products between them. That takes half the multiplications of the matrices W and U of the WY form, which hold the
// inverse so that chunks can be computed before the state is known; here a worker takes one chunk after the other.

const deltaBlock = 16 // rows of a block, a multiple of every tileM

// solve computes rows from…n of U, from V and the state before the chunk, which is 0 if it is the document's first.
// The rows before them are already computed.
func (j *deltaJob[T]) solve(t *deltaChunk[T], first bool, from, n int) {
	l, e := j.l, j.e
	if !first {
		j.times(t.x, t.k, e, 1, t.state, from, n, j.Size, false)
		for i := from; i < n; i++ {
			l.vec.Axpy(t.y[i*e:(i+1)*e], t.x[i*e:], -t.upTo[i])
		}
	}
	for b := from / deltaBlock * deltaBlock; b < n; b += deltaBlock {
		end := min(b+deltaBlock, n)
		if b > 0 {
			j.times(t.y, t.l, linearChunk, 1, t.u, b, end, b, true)
		}
		for i := max(b, from); i < end; i++ {
			y := t.y[i*e : (i+1)*e]
			for s := b; s < i; s++ {
				l.vec.Axpy(y, t.u[s*e:], t.l[i*linearChunk+s])
			}
			l.vec.Scale(t.u[i*e:(i+1)*e], y, t.beta[i])
		}
	}
}

// unsolve is the adjoint of solve: it computes dY, and turns dU into dU'.
func (j *deltaBackward[T]) unsolve(t *deltaGrad[T], n int) {
	l, e := j.l, j.e
	for b := (n - 1) / deltaBlock * deltaBlock; b >= 0; b -= deltaBlock {
		end := min(b+deltaBlock, n)
		for i := end - 1; i >= b; i-- {
			dy := t.dy[i*e : (i+1)*e]
			l.vec.Scale(dy, t.du[i*e:], t.beta[i])
			for s := b; s < i; s++ {
				l.vec.Axpy(t.du[s*e:(s+1)*e], dy, t.l[i*linearChunk+s])
			}
		}
		if b > 0 {
			j.times(t.du, t.l[b*linearChunk:], 1, linearChunk, t.dy[b*e:], 0, b, end-b, true)
		}
	}
}
