package flash

import (
	"fmt"
	"math"
	"unsafe"

	"anneal/device"
	"anneal/device/cpu/pool"
	"anneal/device/cpu/vec"
	"anneal/internal/isa"
	"anneal/tensor"
)

// An Engine computes attention on the workers of a pool. It keeps their scratch memory, which grows to the largest
// shape seen; then calls do not allocate. It must be used from one goroutine at a time.
type Engine struct {
	pool   *pool.Pool
	bf16   runner[float32] // BF16 storage
	capped runner[float32] // the same with a soft-cap, where bf16 has matrix units, which do not cap
	f32    runner[float32] // F32 or F16 storage, and BF16 with FP8 probabilities
	f64    runner[float64] // the reference mode
}

// New returns an engine that uses the kernels of tier, which the machine must support, and the workers of p.
func New(tier isa.Tier, p *pool.Pool) *Engine {
	isa.Require(tier)
	return engineOf(tier, p)
}

func engineOf(tier isa.Tier, p *pool.Pool) *Engine {
	of := func(k kernels[float32]) runner[float32] {
		return runner[float32]{kernels: k, softcap: vec.Float32(tier).Softcap, blockQ: 64, blockK: 64}
	}
	cappedTier := tier
	if tier == isa.AMX {
		cappedTier = isa.AVX512BF16
	}
	return &Engine{
		pool:   p,
		bf16:   of(kernelsBF16(tier)),
		capped: of(kernelsBF16(cappedTier)),
		f32:    of(kernels32(tier)),
		f64:    runner[float64]{kernels: portable[float64](), softcap: vec.Float64().Softcap, blockQ: 64, blockK: 64},
	}
}

// pairs returns the runner of BF16 storage for these heads.
func (e *Engine) pairs(heads device.Heads) *runner[float32] {
	switch {
	case heads.FP8:
		return &e.f32
	case heads.Softcap > 0 && e.bf16.attend != nil:
		return &e.capped
	}
	return &e.bf16
}

// ScratchBytes returns the scratch memory of the engine.
func (e *Engine) ScratchBytes() int {
	return e.bf16.bytes() + e.capped.bytes() + e.f32.bytes() + e.f64.bytes()
}

// Scratch returns the ScratchBytes of an engine after it has computed attention forward, and backward if trains is
// set, for a tier, a number of workers, a storage and a number of tokens. They grow linearly with the length of a row.
func Scratch(tier isa.Tier, workers int, storage tensor.DType, tokens int, heads device.Heads, mask device.Mask,
	trains bool) int {
	e := engineOf(tier, nil)
	s := scoresOf(heads, mask)
	s.tokens, s.rows = tokens, tokens/max(1, mask.Len)
	switch storage {
	case tensor.BF16:
		return e.pairs(heads).predict(s, workers, trains)
	case tensor.F64:
		return e.f64.predict(s, workers, trains)
	}
	return e.f32.predict(s, workers, trains)
}

// Close frees the scratch memory.
func (e *Engine) Close() {
	e.bf16.free()
	e.capped.free()
	e.f32.free()
	e.f64.free()
}

// Forward writes out [N, H·E] and lse [H, N] from qkv [N, (H+2K)·E]; see device.Device.Attention. qkv and out are
// BF16, F16 or F32 with lse in F32, or all are F64. A row that sees no key gives zeros and lse −Inf.
func (e *Engine) Forward(out, lse, qkv *tensor.Tensor, heads device.Heads, mask device.Mask) {
	s := newShape(qkv, lse, heads, mask)
	s.check("out", out, s.tokens, heads.Q*heads.Size)
	switch qkv.DType() {
	case tensor.BF16:
		e.pairs(heads).forward(e.pool, s, out, lse, qkv)
	case tensor.F64:
		e.f64.forward(e.pool, s, out, lse, qkv)
	default:
		e.f32.forward(e.pool, s, out, lse, qkv)
	}
}

// Backward writes dqkv [N, (H+2K)·E] from dout [N, H·E] and the arguments of Forward.
func (e *Engine) Backward(dqkv, dout, out, lse, qkv *tensor.Tensor, heads device.Heads, mask device.Mask) {
	s := newShape(qkv, lse, heads, mask)
	s.check("out", out, s.tokens, heads.Q*heads.Size)
	s.check("dout", dout, s.tokens, heads.Q*heads.Size)
	s.check("dqkv", dqkv, s.tokens, heads.Cols())
	switch qkv.DType() {
	case tensor.BF16:
		e.pairs(heads).backward(e.pool, s, dqkv, dout, out, lse, qkv)
	case tensor.F64:
		e.f64.backward(e.pool, s, dqkv, dout, out, lse, qkv)
	default:
		e.f32.backward(e.pool, s, dqkv, dout, out, lse, qkv)
	}
}

// shape is derived from the arguments of a call.
type shape struct {
	device.Heads
	tokens int     // N
	length int     // T
	rows   int     // N/T
	from   int     // first position of a row with queries; above 0 with a cache
	group  int     // query heads per key-value head
	start  []int32 // [N]; nil for plain causal attention
	layout *device.Layout
	slopes []float64      // [H]; nil without ALiBi
	sinks  *tensor.Tensor // [H]; nil for none
	limit  float64        // of products q·k, where the scores have a soft-cap; 0 for none
	scale  float64        // log₂e times the scale of scores, 1/√E: in these units the exponential is a power of two

	// How a runner cuts the work; see prepare.
	queries int  // in a unit
	units   int  // in a step
	overlap bool // some graph has overlapping blocks
	whole   bool // short rows share blocks
}

// small reports whether one worker computes the attention sooner than it could share the work, in a few microseconds.
func (s *shape) small() bool { return s.tokens*s.length*s.Q*s.Size < 1<<15 }

func newShape(qkv, lse *tensor.Tensor, heads device.Heads, mask device.Mask) shape {
	if mask.Len <= 0 || qkv.Rows()%mask.Len != 0 {
		panic(fmt.Sprintf("flash: %d tokens are not a multiple of the row length %d", qkv.Rows(), mask.Len))
	}
	s := rowsOf(qkv, heads, mask)
	s.rows = s.tokens / mask.Len
	if mask.Start != nil {
		s.start = mask.Start.I32()
	}
	s.check("lse", lse, heads.Q, s.tokens)
	return s
}

// rowsOf returns the shape of a call for part of one row of mask.Len tokens, or for several rows.
func rowsOf(qkv *tensor.Tensor, heads device.Heads, mask device.Mask) shape {
	s := scoresOf(heads, mask)
	s.tokens = qkv.Rows()
	if heads.FP8 && qkv.DType() != tensor.BF16 {
		panic(fmt.Sprintf("flash: FP8 probabilities with qkv %v, want BF16", qkv))
	}
	s.check("qkv", qkv, s.tokens, heads.Cols())
	return s
}

// scoresOf returns the part of a shape that does not depend on the number of rows.
func scoresOf(heads device.Heads, mask device.Mask) shape {
	if heads.KV <= 0 || heads.Q%heads.KV != 0 {
		panic(fmt.Sprintf("flash: %d key-value heads do not divide %d query heads", heads.KV, heads.Q))
	}
	s := shape{Heads: heads, length: mask.Len, group: heads.Q / heads.KV}
	s.scale = math.Log2E / math.Sqrt(float64(heads.Size))
	if heads.Scale != 0 {
		s.scale = math.Log2E * heads.Scale
	}
	s.limit = heads.Softcap / heads.ScoreScale()
	if heads.Softcap > 0 && mask.Slopes != nil {
		panic("flash: a soft-cap of scores with slopes")
	}
	s.layout, s.slopes, s.sinks = mask.Layout, mask.Slopes, mask.Sinks
	if l := mask.Layout; l != nil && (l.Len < mask.Len || l.Head != nil && len(l.Head) != heads.Q) {
		panic(fmt.Sprintf("flash: a layout for rows of %d and %d heads, want %d and %d",
			l.Len, len(l.Head), mask.Len, heads.Q))
	}
	if mask.Slopes != nil && len(mask.Slopes) != heads.Q {
		panic(fmt.Sprintf("flash: %d slopes for %d heads", len(mask.Slopes), heads.Q))
	}
	if mask.Sinks != nil && mask.Sinks.Len() != heads.Q {
		panic(fmt.Sprintf("flash: %d sinks for %d heads", mask.Sinks.Len(), heads.Q))
	}
	return s
}

func (s *shape) check(name string, t *tensor.Tensor, rows, cols int) {
	if t.Rows() != rows || t.Cols() != cols {
		panic(fmt.Sprintf("flash: %s is %v, want [%d %d]", name, t, rows, cols))
	}
}

// token returns the row of qkv that holds the query at a position of a row of the batch.
func (s *shape) token(row, position int) int { return row*s.length + position - s.from }

// single reports whether there is only one query. Its heads with the same keys are then placed side by side, because
// a panel costs as much for one column as for all.
func (s *shape) single() bool { return s.from > 0 && s.from+1 == s.length }

// queryCol, keyCol and valueCol return the first column of a head in qkv.
func (s *shape) queryCol(head int) int { return head * s.Size }
func (s *shape) keyCol(kv int) int     { return (s.Q + kv) * s.Size }
func (s *shape) valueCol(kv int) int   { return (s.Q + s.KV + kv) * s.Size }

// runner holds the state of calls with arithmetic in T: its blocks, its scratch memory and its two jobs.
type runner[T tensor.Number] struct {
	kernels[T]
	softcap        func(dst, x []T, c T) // dst = c·tanh(x/c)
	blockQ, blockK int                   // queries and keys per tile: multiples of the microkernel's columns

	arena   *tensor.Arena
	scratch [][]T  // by worker
	work    []work // by worker
	teams   []team
	members []int // heads of the teams
	wave    wave
	fwd     forwardJob[T]
	bwd     backwardJob[T]
	part    [2]tensor.Tensor // of qkv and out, of a cached sequence
	starts  []int32          // of documents, in short rows that share blocks
}

// prepare cuts the work of a call into teams and allocates the workers' memory.
func (r *runner[T]) prepare(s *shape, workers int) {
	s.queries = r.blockQ
	if s.layout != nil {
		s.queries = max(64, r.tileN)
	}
	if s.from > 0 {
		s.queries = min(s.queries, roundUp(s.length-s.from, r.tileN))
	}
	r.findTeams(s)
	for i := range r.teams {
		t := &r.teams[i]
		s.units = max(s.units, min(t.wide*t.high, maxUnits))
		s.overlap = s.overlap || t.overlaps()
	}
	if s.single() {
		s.units = 1
	}
	if len(r.work) != workers {
		r.work = make([]work, workers)
	}
	for i := range r.work {
		w, panels := &r.work[i], s.units*((s.queries+r.tileN-1)/r.tileN)
		if cap(w.units) < s.units || cap(w.panels) < panels || cap(w.tile.runs) < r.blockK {
			*w = work{
				units: make([]unit, 0, s.units), panels: make([]panel, 0, panels),
				tile: keyTile{runs: make([]run, 0, r.blockK)},
			}
			if r.attend != nil {
				r.roomForPieces(w)
			}
		}
	}
}

// strides returns the row strides of tiles, in elements, without and with the leading words of queries and keys.
func (r *runner[T]) strides(s *shape) (ld, led int) {
	ld = roundUp(s.Size, r.tileN*r.pair)
	lead, _ := r.lead(s)
	return ld, ld + lead*r.pair
}

// predict returns the bytes of scratch memory for calls of a shape on that many workers.
func (r *runner[T]) predict(s shape, workers int, trains bool) int {
	var forward, backward carver[T]
	if r.inColumns(&s) {
		r.columnScratch(&forward, &s, trains)
	} else {
		r.shareBlocks(&s)
		r.prepare(&s, workers)
		r.forwardScratch(&forward, &s)
		if trains {
			r.backwardScratch(&backward, &s)
		}
	}
	size := int(unsafe.Sizeof(T(0)))
	return workers * roundUp(max(forward.used, backward.used), tensor.Align/size) * size
}

// reserve ensures scratch memory of at least n elements for every worker.
func (r *runner[T]) reserve(workers, n int) {
	if len(r.scratch) == workers && len(r.scratch[0]) >= n {
		return
	}
	r.free()
	size := int(unsafe.Sizeof(T(0)))
	n = roundUp(n, tensor.Align/size)
	arena, err := tensor.NewArena("attention scratch", workers*n*size)
	if err != nil {
		panic(err)
	}
	r.arena = arena
	r.scratch = make([][]T, workers)
	for w := range r.scratch {
		t := arena.New(tensor.U8, n*size)
		r.scratch[w] = unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(t.Raw()))), n)
	}
}

func (r *runner[T]) bytes() int {
	if r.arena == nil {
		return 0
	}
	return r.arena.Size()
}

func (r *runner[T]) free() {
	if r.arena != nil {
		r.arena.Close()
	}
	r.arena, r.scratch = nil, nil
}

// carver cuts scratch memory into aligned pieces. Without memory it only counts.
type carver[T tensor.Number] struct {
	buf  []T
	used int
}

func (c *carver[T]) take(n int) []T {
	from := c.used
	c.used += roundUp(n, tensor.Align/4)
	if c.buf == nil {
		return nil
	}
	return c.buf[from : from+n : from+n]
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }
