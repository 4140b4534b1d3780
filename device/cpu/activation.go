package cpu

import (
	"unsafe"

	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// Activations of one operand share this code; gelu.go and relusquared.go provide the functions.

func checkActivation(op string, act, x *tensor.Tensor) {
	length(op, "x", x, act.Len())
	storage(op, "act", act, reference(act))
	storage(op, "x", x, reference(act))
}

func checkActivationGrad(op string, dx, act, dact, x *tensor.Tensor) {
	length(op, "dact", dact, dx.Len())
	length(op, "x", x, dx.Len())
	storage(op, "dx", dx, reference(dx))
	storage(op, "dact", dact, reference(dx))
	storage(op, "x", x, reference(dx))
	if act != nil {
		length(op, "act", act, dx.Len())
		storage(op, "act", act, reference(dx))
	}
}

// An activate is a function of x and its gradient, in one arithmetic and, if the tier has it, in one pass over
// bfloat16.
type activate[T vec.Float] struct {
	f          func(act, x []T)
	grad       func(dx, dact, x []T)
	narrow     func(act, x []tensor.BFloat16)
	narrowGrad func(dx, dact, x []tensor.BFloat16)
}

type activation[T vec.Float] struct {
	e      *engine[T]
	act, x view[T]
	by     activate[T]
	narrow bool
	n      int
}

// activate computes act = f(x).
func (e *engine[T]) activate(act, x *tensor.Tensor, by activate[T]) {
	j := &e.activation
	*j = activation[T]{e: e, act: e.view(act), x: e.view(x), by: by, n: act.Len()}
	j.narrow = e.narrow(j.n, &j.act, &j.x) != nil
	e.reserve(2 * tile)
	e.pool.Run(ceilDiv(j.n, chunk), j)
}

// Do computes one stretch.
func (j *activation[T]) Do(worker, task int) {
	from, to := span(task, chunk, j.n)
	if j.narrow {
		j.by.narrow(j.act.bf16[from:to], j.x.bf16[from:to])
		return
	}
	buf := j.e.buffers(worker, tile)
	for i := from; i < to; i += tile {
		n := min(tile, to-i)
		act := j.act.room(buf.at(0), i, n)
		j.by.f(act, j.x.load(buf.at(1), i, n))
		j.act.store(act, i)
	}
}

type activationGrad[T vec.Float] struct {
	e                *engine[T]
	dx, act, dact, x view[T]
	again            bool // act is computed too
	by               activate[T]
	narrow           bool
	n                int
}

// activateGrad computes dx from dact and x and, unless act is nil, act = f(x).
func (e *engine[T]) activateGrad(dx, act, dact, x *tensor.Tensor, by activate[T]) {
	j := &e.activationGrad
	*j = activationGrad[T]{
		e: e, dx: e.view(dx), dact: e.view(dact), x: e.view(x), again: act != nil, by: by, n: dx.Len(),
	}
	j.act = j.dact
	if j.again {
		j.act = e.view(act)
	}
	j.narrow = e.narrow(j.n, &j.dx, &j.act, &j.dact, &j.x) != nil
	e.reserve(4 * tile)
	e.pool.Run(ceilDiv(j.n, chunk), j)
}

// Do computes one stretch, a tile at a time. Both functions of a tile are computed from copies of x and dact, so the
// results may overwrite them.
func (j *activationGrad[T]) Do(worker, task int) {
	from, to := span(task, chunk, j.n)
	buf := j.e.buffers(worker, tile)
	for i := from; i < to; i += tile {
		n := min(tile, to-i)
		if j.narrow {
			dx, dact, x := j.dx.bf16[i:i+n], j.dact.bf16[i:i+n], j.x.bf16[i:i+n]
			if !j.again {
				j.by.narrowGrad(dx, dact, x)
				continue
			}
			act := unsafe.Slice((*tensor.BFloat16)(unsafe.Pointer(unsafe.SliceData(buf.at(0)))), n)
			j.by.narrow(act, x)
			j.by.narrowGrad(dx, dact, x)
			copy(j.act.bf16[i:i+n], act)
			continue
		}
		dact, x := j.dact.load(buf.at(1), i, n), j.x.load(buf.at(2), i, n)
		act, dx := buf.at(0)[:n], j.dx.room(buf.at(3), i, n)
		if j.again {
			j.by.f(act, x)
		}
		j.by.grad(dx, dact, x)
		j.dx.store(dx, i)
		if j.again {
			copy(j.act.room(act, i, n), act)
			j.act.store(act, i)
		}
	}
}
