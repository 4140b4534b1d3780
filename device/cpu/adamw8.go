package cpu

import (
	"fmt"

	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// AdamW8 implements device.Device.
func (d *Device) AdamW8(p, g, m, mTop, v, vTop *tensor.Tensor, o device.AdamW) {
	const op = "AdamW8"
	ref := updates(op, p, g)
	blocks := ceilDiv(p.Len(), device.Block)
	for _, t := range []*tensor.Tensor{m, v} {
		length(op, "a moment", t, p.Len())
		dtype(op, "a moment", t, tensor.U8)
	}
	for _, t := range []*tensor.Tensor{mTop, vTop} {
		length(op, "largest magnitudes", t, blocks)
		wide(op, "largest magnitudes", t, ref)
	}
	if o.Coupled {
		panic(fmt.Sprintf("cpu: %s: coupled decay is not supported", op))
	}
	if ref {
		d.f64.runAdamW8(p, g, m, mTop, v, vTop, o)
	} else {
		d.f32.runAdamW8(p, g, m, mTop, v, vTop, o)
	}
}

type adamW8[T vec.Float] struct {
	e                *engine[T]
	p, g, mTop, vTop []T
	m, v             []byte
	steps            []vec.AdamW8[T] // per worker, because each has its own buffers
}

func (e *engine[T]) runAdamW8(p, g, m, mTop, v, vTop *tensor.Tensor, o device.AdamW) {
	if e.signed == nil {
		e.signed, e.unsigned = vec.NewCode[T](true), vec.NewCode[T](false)
	}
	e.reserve(2 * device.Block)
	j := &e.adamW8
	if j.steps == nil {
		j.steps = make([]vec.AdamW8[T], e.pool.Threads())
	}
	for i := range j.steps {
		j.steps[i] = vec.AdamW8[T]{
			AdamW: adamWStep[T](o), Signed: e.signed, Unsigned: e.unsigned, Moments: e.scratch[i][:2*device.Block],
		}
	}
	*j = adamW8[T]{
		e: e, p: e.view(p).native, g: e.view(g).native, mTop: e.view(mTop).native, vTop: e.view(vTop).native,
		m: m.Raw(), v: v.Raw(), steps: j.steps,
	}
	e.pool.Run(ceilDiv(len(j.p), chunk), j)
}

// Do updates the blocks of one stretch; the moments of a block stay in the first-level cache between reading and
// writing.
func (j *adamW8[T]) Do(worker, task int) {
	from, to := span(task, chunk, len(j.p))
	if fused := j.e.vec.AdamW8; fused != nil {
		first, blocks := from/device.Block, (to-from)/device.Block
		end := from + blocks*device.Block
		fused(j.p[from:end], j.g[from:end], j.m[from:end], j.v[from:end], j.mTop[first:first+blocks],
			j.vTop[first:first+blocks], &j.steps[worker])
		from = end
	}
	for ; from < to; from += device.Block {
		j.block(worker, from, min(from+device.Block, to))
	}
}

func (j *adamW8[T]) block(worker, from, to int) {
	e, step := j.e, &j.steps[worker]
	m, v := step.Moments[:to-from], step.Moments[device.Block:][:to-from]
	mTop, vTop := &j.mTop[from/device.Block], &j.vTop[from/device.Block]
	e.vec.Decode(m, j.m[from:to], e.signed, *mTop)
	e.vec.Decode(v, j.v[from:to], e.unsigned, *vTop)
	e.vec.AdamW(j.p[from:to], j.g[from:to], m, v, &step.AdamW)
	*mTop, *vTop = e.vec.MaxAbs(m), e.vec.Max(v)
	e.vec.Encode(j.m[from:to], m, e.signed, inverse(mTop))
	e.vec.Encode(j.v[from:to], v, e.unsigned, inverse(vTop))
}

// inverse returns 1/x. If that is not a finite scale, x becomes 0, and so does the block.
func inverse[T vec.Float](x *T) T {
	if *x < 0x1p-126 {
		*x = 0
		return 0
	}
	return 1 / *x
}
