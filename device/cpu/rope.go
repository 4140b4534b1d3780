package cpu

import (
	"fmt"

	"anneal/device"
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// RoPE implements device.Device.
func (d *Device) RoPE(qkv, cos, sin, pos *tensor.Tensor, heads device.Heads, inverse bool) {
	const op = "RoPE"
	ref := reference(qkv)
	shape(op, "qkv", qkv, qkv.Rows(), heads.Cols())
	shape(op, "cos", cos, cos.Rows(), heads.Size/2)
	shape(op, "sin", sin, cos.Rows(), heads.Size/2)
	length(op, "pos", pos, qkv.Rows())
	storage(op, "qkv", qkv, ref)
	wide(op, "cos", cos, ref)
	wide(op, "sin", sin, ref)
	dtype(op, "pos", pos, tensor.I32)
	if ref {
		d.f64.runRoPE(qkv, cos, sin, pos, heads, inverse)
	} else {
		d.f32.runRoPE(qkv, cos, sin, pos, heads, inverse)
	}
}

type rope[T vec.Float] struct {
	e             *engine[T]
	qkv, cos, sin view[T]
	pos           []int32
	positions     int // rows of the tables
	heads         device.Heads
	inverse       bool
	narrow        *vec.Narrow[T]
	rows, perTask int
}

func (e *engine[T]) runRoPE(qkv, cos, sin, pos *tensor.Tensor, heads device.Heads, inverse bool) {
	j := &e.rope
	*j = rope[T]{
		e: e, qkv: e.view(qkv), cos: e.view(cos), sin: e.view(sin), pos: pos.I32(), positions: cos.Rows(),
		heads: heads, inverse: inverse, rows: qkv.Rows(),
	}
	cols := (heads.Q + heads.KV) * heads.Size
	j.narrow = e.narrow(heads.Size/2, &j.qkv)
	e.reserve(cols + heads.Size/2)
	var tasks int
	j.perTask, tasks = rowTasks(j.rows, cols)
	e.pool.Run(tasks, j)
}

// Do rotates the heads of the rows of one task.
func (j *rope[T]) Do(worker, task int) {
	size, half := j.heads.Size, j.heads.Size/2
	cols := (j.heads.Q + j.heads.KV) * size
	buf, minus := j.e.scratch[worker][:cols], j.e.scratch[worker][cols:cols+half]
	from, to := span(task, j.perTask, j.rows)
	for r := from; r < to; r++ {
		p := int(j.pos[r])
		if p < 0 || p >= j.positions {
			panic(fmt.Sprintf("cpu: RoPE: position %d of token %d is outside the tables of %d rows", p, r, j.positions))
		}
		cos, sin := j.cos.native[p*half:(p+1)*half], j.sin.native[p*half:(p+1)*half]
		if j.inverse {
			j.e.vec.Scale(minus, sin, -1)
			sin = minus
		}
		if j.narrow != nil {
			row := j.qkv.bf16[r*j.qkv.cols:]
			if j.heads.Interleaved {
				j.narrow.RotatePairs(cos, sin, row, j.heads.Q+j.heads.KV)
			} else {
				j.narrow.Rotate(cos, sin, row, row[half:], j.heads.Q+j.heads.KV)
			}
			continue
		}
		row := j.qkv.load(buf, r*j.qkv.cols, cols)
		for h := 0; h < cols; h += size {
			if j.heads.Interleaved {
				j.e.vec.RotatePairs(row[h:h+size], cos, sin)
			} else {
				j.e.vec.Rotate(row[h:h+half], row[h+half:h+size], cos, sin)
			}
		}
		j.qkv.store(row, r*j.qkv.cols)
	}
}
