package cpu

import (
	"anneal/device/cpu/vec"
	"anneal/tensor"
)

// RoundStochastic implements device.Device.
func (d *Device) RoundStochastic(dst, src *tensor.Tensor, rng tensor.RNG, first uint64) {
	const op = "RoundStochastic"
	length(op, "dst", dst, src.Len())
	dtype(op, "dst", dst, tensor.BF16)
	dtype(op, "src", src, tensor.F32)
	j := &d.stochastic
	*j = stochastic{vec: &d.f32.vec, dst: dst.BF16(), src: src.F32(), rng: rng, first: first, workers: d.randomRows()}
	d.pool.Run(ceilDiv(len(j.dst), chunk), j)
}

// randomRows returns memory for random numbers for each worker.
func (d *Device) randomRows() []randomRow {
	if d.randoms == nil {
		d.randoms = make([]randomRow, d.Threads())
	}
	return d.randoms
}

type stochastic struct {
	vec     *vec.Table[float32]
	dst     []tensor.BFloat16
	src     []float32
	rng     tensor.RNG
	first   uint64
	workers []randomRow
}

// randomRow holds a worker's random numbers for one tile, and their blocks.
type randomRow struct {
	mask   vec.Mask[float32]
	random [tile]uint32
}

// Do rounds one stretch. 128 elements use 16 blocks of random numbers.
func (j *stochastic) Do(worker, task int) {
	from, to := span(task, chunk, len(j.dst))
	w := &j.workers[worker]
	for i := from; i < to; i += tile {
		n := min(tile, to-i)
		j.vec.PackStochastic(j.dst[i:i+n], j.src[i:i+n], w.draw(j.vec, n, j.rng, j.first+uint64(i/8)))
	}
}

// draw returns the numbers of n elements, at most a tile, from block first of the stream on.
func (w *randomRow) draw(v *vec.Table[float32], n int, rng tensor.RNG, first uint64) []uint32 {
	random := w.random[:(n+127)/128*128]
	w.mask.Counter, w.mask.Key = rng.Counter(first)
	v.Halves(random, &w.mask)
	return random
}
