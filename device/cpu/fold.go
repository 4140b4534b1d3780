package cpu

import (
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// Fold implements device.Device.
func (d *Device) Fold(dst *tensor.Tensor, terms []*tensor.Tensor, add bool) {
	const op = "Fold"
	wide(op, "dst", dst, reference(dst))
	if len(terms) == 0 {
		panic("cpu: Fold: no terms")
	}
	stored := terms[0].DType()
	if stored != tensor.BF16 {
		stored = dst.DType()
	}
	for _, t := range terms {
		length(op, "a term", t, dst.Len())
		dtype(op, "a term", t, stored)
	}
	if reference(dst) {
		d.f64.runFold(dst, terms, add)
	} else {
		d.f32.runFold(dst, terms, add)
	}
}

type fold[T vec.Float] struct {
	e     *engine[T]
	dst   []T
	terms []view[T] // dst becomes their sum
}

func (e *engine[T]) runFold(dst *tensor.Tensor, terms []*tensor.Tensor, add bool) {
	j := &e.fold
	*j = fold[T]{e: e, dst: e.view(dst).native, terms: j.terms[:0]}
	if add {
		j.terms = append(j.terms, e.view(dst))
	}
	for _, t := range terms {
		j.terms = append(j.terms, e.view(t))
	}
	e.reserve(2 * tile)
	e.pool.Run(ceilDiv(len(j.dst), chunk), j)
}

// Do adds the terms of one stretch, tile by tile. Only the last addition of a tile writes to dst, which may be a term.
func (j *fold[T]) Do(worker, task int) {
	buf := j.e.buffers(worker, tile)
	from, to := span(task, chunk, len(j.dst))
	for i := from; i < to; i += tile {
		dst := j.dst[i:min(i+tile, to)]
		sum := j.terms[0].load(buf.at(0), i, len(dst))
		for k := range j.terms[1:] {
			into := buf.at(0)[:len(dst)]
			if k+2 == len(j.terms) {
				into = dst
			}
			j.e.vec.Mix(into, sum, j.terms[k+1].load(buf.at(1), i, len(dst)), 1, 1)
			sum = into
		}
		if len(j.terms) == 1 {
			copy(dst, sum)
		}
	}
}
