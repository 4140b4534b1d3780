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
	if j.random == nil {
		j.random = make([][tile]uint32, d.Threads())
	}
	*j = stochastic{vec: &d.f32.vec, dst: dst.BF16(), src: src.F32(), rng: rng, first: first, random: j.random}
	d.pool.Run(ceilDiv(len(j.dst), chunk), j)
}

type stochastic struct {
	vec    *vec.Table[float32]
	dst    []tensor.BFloat16
	src    []float32
	rng    tensor.RNG
	first  uint64
	random [][tile]uint32 // by worker
}

// Do rounds one stretch. 128 elements take 16 blocks of random numbers.
func (j *stochastic) Do(worker, task int) {
	from, to := span(task, chunk, len(j.dst))
	for i := from; i < to; i += tile {
		n := min(tile, to-i)
		random := j.random[worker][:(n+127)/128*128]
		var m vec.Mask[float32]
		m.Counter, m.Key = j.rng.Counter(j.first + uint64(i/8))
		j.vec.Halves(random, &m)
		j.vec.PackStochastic(j.dst[i:i+n], j.src[i:i+n], random)
	}
}
