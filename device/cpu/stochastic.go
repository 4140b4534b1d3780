package cpu

import "anneal/tensor"

// RoundStochastic implements device.Device. It is portable code on every tier: most of its time is the generator's.
func (d *Device) RoundStochastic(dst, src *tensor.Tensor, rng tensor.RNG, first uint64) {
	const op = "RoundStochastic"
	length(op, "dst", dst, src.Len())
	dtype(op, "dst", dst, tensor.BF16)
	dtype(op, "src", src, tensor.F32)
	j := &d.stochastic
	*j = stochastic{dst: dst.BF16(), src: src.F32(), rng: rng, first: first}
	d.pool.Run(ceilDiv(len(j.dst), chunk), j)
}

type stochastic struct {
	dst   []tensor.BFloat16
	src   []float32
	rng   tensor.RNG
	first uint64
}

// Do rounds one stretch, eight elements of a block of random numbers at a time.
func (j *stochastic) Do(_, task int) {
	from, to := span(task, chunk, len(j.dst))
	for i := from; i < to; i += 8 {
		block := j.rng.Block(j.first + uint64(i/8))
		for e := range min(8, to-i) {
			j.dst[i+e] = tensor.BF16Stochastic(j.src[i+e], block[e/2]>>(e%2*16))
		}
	}
}
