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
	if j.workers == nil {
		j.workers = make([]randomRow, d.Threads())
	}
	*j = stochastic{vec: &d.f32.vec, dst: dst.BF16(), src: src.F32(), rng: rng, first: first, workers: j.workers}
	d.pool.Run(ceilDiv(len(j.dst), chunk), j)
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
		random := w.random[:(n+127)/128*128]
		w.mask.Counter, w.mask.Key = j.rng.Counter(j.first + uint64(i/8))
		j.vec.Halves(random, &w.mask)
		j.vec.PackStochastic(j.dst[i:i+n], j.src[i:i+n], random)
	}
}
