package cpu

import (
	"anneal/device/cpu/pool"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// tile is the number of elements that flat kernels process at a time: a few rows of scratch memory of that size fit
// in the first-level cache. chunk is the number of elements of one task.
const (
	tile  = 1024
	chunk = 16 << 10
)

// An engine runs the kernels in one arithmetic: float32, or float64 in the reference mode. It owns the jobs, whose
// fields each call sets, and scratch memory for each worker.
type engine[T vec.Float] struct {
	pool    *pool.Pool
	vec     vec.Table[T]
	scratch [][]T
	partial []T       // per-task sums of gradients, added in task order
	sums    []float64 // per-task sums

	signed, unsigned *vec.Code[T] // of 8-bit moments; created on first use

	rmsNorm        rmsNorm[T]
	rmsNormAgain   rmsNormAgain[T]
	rmsNormGrad    rmsNormGrad[T]
	layerNorm      layerNorm[T]
	layerNormAgain layerNormAgain[T]
	layerNormGrad  layerNormGrad[T]
	qkNorm         qkNorm[T]
	qkNormGrad     qkNormGrad[T]
	rope           rope[T]
	gated          gated[T]
	gatedGrad      gatedGrad[T]
	activation     activation[T]
	activationGrad activationGrad[T]
	mix            mixStreams[T]
	mixGrad        mixStreamsGrad[T]
	values         addValues[T]
	valuesGrad     addValuesGrad[T]
	route          route[T]
	routeGrad      routeGrad[T]
	takeRows       takeRows[T]
	mixRows        mixRows[T]
	weighRows      weighRows[T]
	gateRows       gateRows[T]
	gateRowsGrad   gateRowsGrad[T]
	weightNorm     weightNorm[T]
	weightNormGrad weightNormGrad[T]
	embed          embed[T]
	embedGrad      embedGrad[T]
	crossEntropy   crossEntropy[T]
	likeliest      likeliest[T]
	softcap        softcap[T]
	adamW          adamW[T]
	adamW8         adamW8[T]
	momentum       momentum[T]
	lion           lion[T]
	adEMAMix       adEMAMix[T]
	adafactor      adafactor[T]
	descend        descend[T]
	equalise       equalise[T]
	sophia         sophia[T]
	meanSquare     meanSquare[T]
	anchor         anchor[T]
	reduce         reduce[T]
	sumRows        sumRows[T]
	convert        convert[T]
	add            add[T]
	fold           fold[T]
	copyRuns       copyRuns[T]
	merge          mergeAttention[T]
	sinks          sinksGrad[T]
	shortConv      shortConv[T]
	encodeInt8     encodeInt8[T]
	decodeInt8     decodeInt8[T]
	dropout        dropout[T]
	combine        combine[T]
	scale          scale[T]
	maxAbs         maxAbs[T]
	quantize       quantize[T]
}

func newEngine[T vec.Float](p *pool.Pool, table vec.Table[T]) *engine[T] {
	return &engine[T]{pool: p, vec: table, scratch: make([][]T, p.Threads())}
}

// reserve ensures scratch memory for n elements per worker. It allocates only when n grows.
func (e *engine[T]) reserve(n int) {
	for i, s := range e.scratch {
		if len(s) < n {
			e.scratch[i] = make([]T, n)
		}
	}
}

// buffers cuts a worker's scratch memory into consecutive pieces of n elements.
type buffers[T vec.Float] struct {
	mem []T
	n   int
}

func (e *engine[T]) buffers(worker, n int) buffers[T] { return buffers[T]{e.scratch[worker], n} }

func (b buffers[T]) at(i int) []T { return b.mem[i*b.n : (i+1)*b.n] }

// partials returns n zeroed sums of cols elements each.
func (e *engine[T]) partials(n, cols int) []T {
	if len(e.partial) < n*cols {
		e.partial = make([]T, n*cols)
	}
	p := e.partial[:n*cols]
	clear(p)
	return p
}

// rowTasks cuts rows of cols elements into tasks of about chunk elements. It returns the rows per task and the number
// of tasks.
func rowTasks(rows, cols int) (perTask, tasks int) {
	perTask = max(1, chunk/max(1, cols))
	return perTask, ceilDiv(rows, perTask)
}

// sumTasks cuts rows for a kernel that sums over them. Each task costs a row of partial sums, so there are at most 64
// tasks.
func sumTasks(rows int) (perTask, tasks int) {
	perTask = max(16, ceilDiv(rows, 64))
	return perTask, ceilDiv(rows, perTask)
}

func ceilDiv(a, b int) int { return (a + b - 1) / b }

// span returns the range of n elements that a task of size elements covers.
func span(task, size, n int) (from, to int) { return task * size, min((task+1)*size, n) }

// reference reports whether t belongs to the reference mode.
func reference(t *tensor.Tensor) bool { return t.DType() == tensor.F64 }
