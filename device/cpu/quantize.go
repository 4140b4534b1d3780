package cpu

import (
	"fmt"

	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// MaxAbs implements device.Device.
func (d *Device) MaxAbs(t *tensor.Tensor) float64 {
	if reference(t) {
		return d.f64.runMaxAbs(t)
	}
	return d.f32.runMaxAbs(t)
}

type maxAbs[T vec.Float] struct {
	e   *engine[T]
	t   view[T]
	n   int
	top []T // one per task
}

func (e *engine[T]) runMaxAbs(t *tensor.Tensor) float64 {
	j := &e.maxAbs
	tasks := ceilDiv(t.Len(), chunk)
	*j = maxAbs[T]{e: e, t: e.view(t), n: t.Len(), top: e.partials(tasks, 1)}
	e.reserve(tile)
	e.pool.Run(tasks, j)
	return float64(e.vec.MaxAbs(j.top))
}

// Do finds the largest magnitude of one stretch. A NaN persists, because no number is larger.
func (j *maxAbs[T]) Do(worker, task int) {
	from, to := span(task, chunk, j.n)
	for i := from; i < to; i += tile {
		if v := j.e.vec.MaxAbs(j.t.load(j.e.scratch[worker], i, min(tile, to-i))); v > j.top[task] || v != v {
			j.top[task] = v
		}
	}
}

// Quantize implements device.Device.
func (d *Device) Quantize(dst, src *tensor.Tensor, format tensor.DType, scale float64) {
	const op = "Quantize"
	length(op, "dst", dst, src.Len())
	dtype(op, "dst", dst, tensor.BF16)
	storage(op, "src", src, false)
	d.f32.runQuantize(dst, src, grid(format, scale))
}

func grid(format tensor.DType, scale float64) vec.Grid[float32] {
	switch format {
	case tensor.F8E4M3:
		return vec.Grid[float32]{Scale: float32(scale), Top: 448, Least: 0x1p-6, Magic: 0x1.8p20}
	case tensor.F8E5M2:
		return vec.Grid[float32]{Scale: float32(scale), Top: 57344, Least: 0x1p-14, Magic: 0x1.8p21}
	}
	panic(fmt.Sprintf("cpu: Quantize: %v is not an FP8 format", format))
}

type quantize[T vec.Float] struct {
	e    *engine[T]
	dst  []tensor.BFloat16
	src  view[T]
	grid vec.Grid[T]
}

func (e *engine[T]) runQuantize(dst, src *tensor.Tensor, g vec.Grid[T]) {
	j := &e.quantize
	*j = quantize[T]{e: e, dst: dst.BF16(), src: e.view(src), grid: g}
	e.reserve(tile)
	e.pool.Run(ceilDiv(len(j.dst), chunk), j)
}

// Do rounds one stretch.
func (j *quantize[T]) Do(worker, task int) {
	from, to := span(task, chunk, len(j.dst))
	for i := from; i < to; i += tile {
		n := min(tile, to-i)
		j.e.vec.Quantize(j.dst[i:i+n], j.src.load(j.e.scratch[worker], i, n), &j.grid)
	}
}
