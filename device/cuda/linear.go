//go:build cuda && linux

package cuda

import (
	"fmt"

	"anneal/device"
	"anneal/device/cuda/driver"
	"anneal/tensor"
)

// Sizes of linear.cu and linear_grad.cu, whose blocks have 256 threads.
const (
	linearChunk  = device.LinearChunk
	linearSide   = 64
	linearStride = linearSide + 4
	linearDepth  = 32
)

// linear is one call of linear attention on rows of tokens, whose chunks start at multiples of 64 positions.
type linear struct {
	d          *Device
	wide       tensor.DType // of states
	storage    tensor.DType
	qkv, gates *tensor.Tensor
	start      *tensor.Tensor
	cache      *device.Cache // nil unless it holds earlier tokens
	heads      device.Heads
	length     int // tokens of a row
	rows       int
	first      int // position of a row's first token
	chunks     int // of a row
}

// newLinear checks the arguments that the calls share.
func (d *Device) newLinear(op string, qkv, gates *tensor.Tensor, heads device.Heads, length, first int,
	start *tensor.Tensor) linear {
	n := qkv.Rows()
	if heads.Rule != device.AddRule {
		panic("cuda: " + op + ": the rule has no kernel")
	}
	if length <= 0 || n%length != 0 || first < 0 {
		panic(fmt.Sprintf("cuda: %[1]s: %[4]d tokens are not rows of %[2]d from position %[3]d on",
			op, length, first, n))
	}
	l := linear{
		d: d, wide: arithmetic(qkv), storage: qkv.DType(), qkv: qkv, gates: gates, start: start, heads: heads,
		length: length, rows: n / length,
		first: first, chunks: ceilDiv(first+length, linearChunk) - first/linearChunk,
	}
	shape(op, "qkv", qkv, n, heads.Cols())
	storage(op, "qkv", qkv, l.wide)
	if gates != nil {
		shape(op, "gates", gates, n, heads.KV)
		dtype(op, "gates", gates, l.wide)
	}
	if start != nil {
		length := start.Len()
		if dtype(op, "Start", start, tensor.I32); length != n {
			panic(fmt.Sprintf("cuda: %s: Start has %d tokens, want %d", op, length, n))
		}
	}
	return l
}

// parts returns the number of tiles of 64 columns per head.
func (l *linear) parts() int { return ceilDiv(l.heads.Size, linearSide) }

// stateSize returns the elements of a state.
func (l *linear) stateSize() int { return (l.heads.Size + 1) * l.heads.Size }

// statesBytes returns the bytes of a state for every chunk, row and key-value head, and of as many decay factors.
func (l *linear) statesBytes() (states, fades int) {
	n := l.rows * l.heads.KV * l.chunks * l.wide.Size()
	return n * l.stateSize(), n
}

// linearScratch is the scratch memory of LinearAttentionGrad in bytes, which is more than that of LinearAttention.
type linearScratch struct{ states, fades, deltas, queryDots, keyDots int }

func (l *linear) gradScratch(gated bool) (s linearScratch) {
	tokens := l.rows * l.length * l.wide.Size()
	s.states, s.fades = l.statesBytes()
	s.deltas = l.heads.Q * tokens
	if gated {
		s.queryDots, s.keyDots = l.parts()*tokens*l.heads.Q, l.parts()*tokens*l.heads.KV
	}
	return s
}

// all counts the states twice: their gradients are as many.
func (s linearScratch) all() int { return 2*s.states + s.fades + s.deltas + s.queryDots + s.keyDots }

// begin starts a kernel of a file whose parameters are pointers followed by the description of the tokens.
func (l *linear) begin(file, kernel string, pointers ...driver.Pointer) *call {
	c := l.d.begin(file, kernel, l.storage)
	for _, p := range pointers {
		c.pointer(p)
	}
	c.tensor(l.qkv)
	c.tensor(l.gates)
	c.tensor(l.start)
	if l.cache == nil {
		c.word(0)
		c.word(0)
	} else {
		c.tensor(&l.cache.KV)
		c.tensor(&l.cache.Gates)
	}
	for _, n := range []int{l.length, l.first, l.heads.Q, l.heads.KV, l.heads.Size} {
		c.int(n)
	}
	return c
}

// shared returns the bytes of shared memory of a kernel with slices of two operands and the given number of tiles of
// scores.
func (l *linear) shared(scores int) int {
	return (2*linearDepth + scores*linearChunk) * linearStride * l.wide.Size()
}

// states computes the states before all chunks, starting from initial, or zero if that is 0. It stores in final the
// state after the last complete chunk, unless final is 0.
func (l *linear) states(states, fades, initial, final driver.Pointer) {
	complete := (l.first+l.length)/linearChunk - l.first/linearChunk
	if final == 0 {
		complete = l.chunks - 1
	}
	c := l.begin("linear", "linear_states", states, fades)
	c.int(complete)
	c.int(l.chunks)
	c.grid(complete*l.heads.KV*l.rows, l.parts()*l.parts(), 1, 256, l.shared(0))
	l.scan(states, fades, initial, final, complete, false)
}

// scan adds up the states of chunks in order, or from the last to the first.
func (l *linear) scan(states, fades, initial, final driver.Pointer, chunks int, backward bool) {
	c := l.d.begin("linear", "linear_scan", l.storage)
	for _, p := range []driver.Pointer{states, fades, initial, final} {
		c.pointer(p)
	}
	c.int(chunks)
	c.int(l.chunks)
	c.int(l.stateSize())
	if backward {
		c.int(1)
	} else {
		c.int(0)
	}
	c.grid(ceilDiv(l.stateSize(), 256), l.heads.KV*l.rows, 1, 256, 0)
}

// out computes the results, and their denominators unless norm is nil.
func (l *linear) out(out, norm *tensor.Tensor, states driver.Pointer) {
	c := l.begin("linear", "linear_out", address(out), address(norm))
	c.pointer(states)
	c.int(l.chunks)
	c.int(l.rows)
	c.grid(l.chunks*l.heads.Q*l.rows, l.parts(), 1, 256, l.shared(1))
}

// address returns the address of a tensor; 0 for nil.
func address(t *tensor.Tensor) driver.Pointer {
	if t.IsZero() {
		return 0
	}
	return driver.Pointer(t.Pointer())
}

// LinearAttention implements device.Device. Scratch holds a state for every chunk.
func (d *Device) LinearAttention(out, norm, qkv, gates *tensor.Tensor, heads device.Heads, mask device.Mask) {
	const op = "LinearAttention"
	l := d.newLinear(op, qkv, gates, heads, mask.Len, 0, mask.Start)
	l.checkResults(op, out, norm, mask)
	states, fades := l.statesBytes()
	at := d.scratch(states + fades)
	l.states(at, at+driver.Pointer(states), 0, 0)
	l.out(out, norm, at)
}

func (l *linear) checkResults(op string, out, norm *tensor.Tensor, mask device.Mask) {
	if mask.Layout != nil || mask.Slopes != nil {
		panic("cuda: linear attention supports neither patterns nor ALiBi")
	}
	n := l.rows * l.length
	shape(op, "out", out, n, l.heads.Q*l.heads.Size)
	dtype(op, "out", out, l.storage)
	shape(op, "norm", norm, l.heads.Q, n)
	dtype(op, "norm", norm, l.wide)
}

// LinearAttentionGrad implements device.Device. Scratch holds a state and its gradient for every chunk, δ, and with
// gates the products for their gradient.
func (d *Device) LinearAttentionGrad(dqkv, dgates, dout, out, norm, qkv, gates *tensor.Tensor, heads device.Heads,
	mask device.Mask) {
	const op = "LinearAttentionGrad"
	l := d.newLinear(op, qkv, gates, heads, mask.Len, 0, mask.Start)
	l.checkResults(op, out, norm, mask)
	for _, t := range []struct {
		name    string
		t, like *tensor.Tensor
	}{{"dout", dout, out}, {"dqkv", dqkv, qkv}} {
		shape(op, t.name, t.t, t.like.Rows(), t.like.Cols())
		dtype(op, t.name, t.t, l.storage)
	}
	if gates != nil {
		shape(op, "dgates", dgates, l.rows*l.length, heads.KV)
		dtype(op, "dgates", dgates, l.wide)
	}
	of := l.gradScratch(gates != nil)
	states := d.scratch(of.all())
	grads := states + driver.Pointer(of.states)
	fades := grads + driver.Pointer(of.states)
	deltas := fades + driver.Pointer(of.fades)
	var queryDots, keyDots driver.Pointer
	if gates != nil {
		queryDots = deltas + driver.Pointer(of.deltas)
		keyDots = queryDots + driver.Pointer(of.queryDots)
	}

	l.states(states, fades, 0, 0)
	l.deltas(deltas, dout, out, norm)
	l.backward("linear_grad_states", grads, fades, dout, norm, deltas, 0, (l.chunks-1)*heads.KV, l.parts()*l.parts(), 0)
	l.scan(grads, fades, 0, 0, l.chunks-1, true)
	l.backward("linear_grad_queries", address(dqkv), queryDots, dout, norm, deltas, states,
		l.chunks*heads.Q, l.parts(), 1)
	l.backward("linear_grad_keys", address(dqkv), keyDots, dout, norm, deltas, grads, l.chunks*heads.KV, 2*l.parts(), 1)
	if gates == nil {
		return
	}
	c := d.begin("linear_grad", "linear_grad_gates", l.storage)
	c.tensor(dgates)
	c.pointer(queryDots)
	c.pointer(keyDots)
	c.tensor(gates)
	c.tensor(mask.Start)
	for _, n := range []int{l.length, heads.Q, heads.KV, l.rows, l.parts()} {
		c.int(n)
	}
	c.launch(l.rows*heads.KV, 32, 0)
}

// deltas computes the row sums of dout·out divided by the denominators.
func (l *linear) deltas(deltas driver.Pointer, dout, out, norm *tensor.Tensor) {
	n := l.rows * l.length
	c := l.d.begin("linear_grad", "linear_deltas", l.storage)
	c.pointer(deltas)
	c.tensor(dout)
	c.tensor(out)
	c.tensor(norm)
	c.int(n)
	c.int(l.heads.Q)
	c.int(l.heads.Size)
	c.launch(ceilDiv(n*l.heads.Q*32, 256), 256, 0)
}

// backward launches a kernel of the gradient, with the given numbers of blocks per row and of tiles of scores per
// block. states is 0 for the kernel that computes states.
func (l *linear) backward(kernel string, to, too driver.Pointer, dout, norm *tensor.Tensor,
	deltas, states driver.Pointer, blocks, tiles, scores int) {
	c := l.begin("linear_grad", kernel, to, too)
	c.tensor(dout)
	c.tensor(norm)
	c.pointer(deltas)
	if states != 0 {
		c.pointer(states)
	}
	c.int(l.chunks)
	c.int(l.rows)
	c.grid(blocks*l.rows, tiles, 1, 256, l.shared(scores))
}

// LinearAttentionCached implements device.Device with the kernels of LinearAttention, which also read the cached part
// of the current chunk, so that every sum has the same terms as in a pass from the first token.
func (d *Device) LinearAttentionCached(out, qkv, gates *tensor.Tensor, cache *device.Cache, first int,
	heads device.Heads) {
	const op = "LinearAttentionCached"
	n := qkv.Rows()
	l := d.newLinear(op, qkv, gates, heads, n, first, nil)
	l.cache = cache
	shape(op, "out", out, n, heads.Q*heads.Size)
	dtype(op, "out", out, l.storage)
	shape(op, "cached keys and values", &cache.KV, linearChunk, 2*heads.KV*heads.Size)
	dtype(op, "cached keys and values", &cache.KV, l.storage)
	shape(op, "the state", &cache.State, heads.KV*(heads.Size+1), heads.Size)
	dtype(op, "the state", &cache.State, l.wide)
	if gates != nil {
		shape(op, "cached gates", &cache.Gates, linearChunk, heads.KV)
		dtype(op, "cached gates", &cache.Gates, l.wide)
	}
	states, fades := l.statesBytes()
	at, state := d.scratch(states+fades), address(&cache.State)
	initial := state
	if first < linearChunk {
		initial = 0
	}
	l.states(at, at+driver.Pointer(states), initial, state)
	l.out(out, nil, at)
	l.keep()
}

// keep writes the tokens since the last multiple of 64 to the cache.
func (l *linear) keep() {
	end := l.first + l.length
	from := max(l.first, end/linearChunk*linearChunk)
	c := l.d.begin("linear", "linear_keep", l.storage)
	c.tensor(&l.cache.KV)
	c.tensor(&l.cache.Gates)
	c.tensor(l.qkv)
	c.tensor(l.gates)
	for _, n := range []int{from, l.first, l.heads.Q, l.heads.KV, l.heads.Size} {
		c.int(n)
	}
	c.launch(end-from, 256, 0)
}
