package cpu

import (
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// What activations of one operand have in common: gelu.go and relusquared.go say which function.

func checkActivation(op string, act, x *tensor.Tensor) {
	length(op, "x", x, act.Len())
	storage(op, "act", act, reference(act))
	storage(op, "x", x, reference(act))
}

func checkActivationGrad(op string, dx, dact, x *tensor.Tensor) {
	length(op, "dact", dact, dx.Len())
	length(op, "x", x, dx.Len())
	storage(op, "dx", dx, reference(dx))
	storage(op, "dact", dact, reference(dx))
	storage(op, "x", x, reference(dx))
}

type activation[T vec.Float] struct {
	e      *engine[T]
	act, x view[T]
	f      func(act, x []T)
	narrow func(act, x []tensor.BFloat16) // f in one pass over bfloat16, nil where that is not possible
	n      int
}

// activate computes act = f(x), or with narrow where the storage allows.
func (e *engine[T]) activate(act, x *tensor.Tensor, f func(act, x []T), narrow func(act, x []tensor.BFloat16)) {
	j := &e.activation
	*j = activation[T]{e: e, act: e.view(act), x: e.view(x), f: f, n: act.Len()}
	if e.narrow(j.n, &j.act, &j.x) != nil {
		j.narrow = narrow
	}
	e.reserve(2 * tile)
	e.pool.Run(ceilDiv(j.n, chunk), j)
}

// Do computes one stretch.
func (j *activation[T]) Do(worker, task int) {
	from, to := span(task, chunk, j.n)
	if j.narrow != nil {
		j.narrow(j.act.bf16[from:to], j.x.bf16[from:to])
		return
	}
	buf := j.e.buffers(worker, tile)
	for i := from; i < to; i += tile {
		n := min(tile, to-i)
		act := j.act.room(buf.at(0), i, n)
		j.f(act, j.x.load(buf.at(1), i, n))
		j.act.store(act, i)
	}
}

type activationGrad[T vec.Float] struct {
	e           *engine[T]
	dx, dact, x view[T]
	f           func(dx, dact, x []T)
	narrow      func(dx, dact, x []tensor.BFloat16) // as activation's
	n           int
}

// activateGrad computes dx = f(dact, x), or with narrow where the storage allows.
func (e *engine[T]) activateGrad(dx, dact, x *tensor.Tensor, f func(dx, dact, x []T), narrow func(dx, dact, x []tensor.BFloat16)) {
	j := &e.activationGrad
	*j = activationGrad[T]{e: e, dx: e.view(dx), dact: e.view(dact), x: e.view(x), f: f, n: dx.Len()}
	if e.narrow(j.n, &j.dx, &j.dact, &j.x) != nil {
		j.narrow = narrow
	}
	e.reserve(3 * tile)
	e.pool.Run(ceilDiv(j.n, chunk), j)
}

// Do computes the gradients of one stretch.
func (j *activationGrad[T]) Do(worker, task int) {
	from, to := span(task, chunk, j.n)
	if j.narrow != nil {
		j.narrow(j.dx.bf16[from:to], j.dact.bf16[from:to], j.x.bf16[from:to])
		return
	}
	buf := j.e.buffers(worker, tile)
	for i := from; i < to; i += tile {
		n := min(tile, to-i)
		dx := j.dx.room(buf.at(0), i, n)
		j.f(dx, j.dact.load(buf.at(1), i, n), j.x.load(buf.at(2), i, n))
		j.dx.store(dx, i)
	}
}
