//go:build cuda && linux

package cuda

import (
	"anneal/device"
	"anneal/tensor"
)

// random adds a stream of random numbers: its key, step and purpose.
func (c *call) random(r tensor.RNG) {
	counter, key := r.Counter(0)
	c.word(uint64(key[1])<<32 | uint64(key[0]))
	c.word(uint64(counter[2]))
	c.word(uint64(counter[3]))
}

// randomThreads is the number of threads per block that draw random numbers, each for eight of 128 elements.
const randomThreads = 256

// Dropout implements device.Device.
func (d *Device) Dropout(dst, src *tensor.Tensor, o device.Dropout) {
	shape("Dropout", "src", src, dst.Rows(), dst.Cols())
	add := 0
	if o.Add {
		add = 1
	}
	c := d.begin("random", "dropout", dst.DType(), stored("S", src), define{"W", widest(dst, src)})
	c.tensor(dst)
	c.tensor(src)
	c.int(dst.Cols())
	c.random(o.RNG)
	c.word(uint64(o.Row)<<32 | uint64(o.Site)<<16)
	c.int(o.Keep)
	c.double(o.Scale)
	c.int(add)
	threads := ceilDiv(dst.Cols(), 128) * 16
	c.grid(dst.Rows(), ceilDiv(threads, randomThreads), 1, min(ceilDiv(threads, 32)*32, randomThreads), 0)
}

// RoundStochastic implements device.Device.
func (d *Device) RoundStochastic(dst, src *tensor.Tensor, rng tensor.RNG, first uint64) {
	const op = "RoundStochastic"
	length(op, "dst", dst, src.Len())
	dtype(op, "dst", dst, tensor.BF16)
	dtype(op, "src", src, tensor.F32)
	c := d.begin("random", "round_stochastic", tensor.BF16, stored("S", src), define{"W", "float"})
	c.tensor(dst)
	c.tensor(src)
	c.int(dst.Len())
	c.random(rng)
	c.word(first)
	c.launch(ceilDiv(ceilDiv(dst.Len(), 128)*16, randomThreads), randomThreads, 0)
}
