//go:build cuda && linux

package cuda

import "anneal/tensor"

// mixStretch is the bytes per block of mix_streams_grad: 8 vectors for each of 256 threads.
const mixStretch = 256 * 16 * 8

// MixStreams implements device.Device.
func (d *Device) MixStreams(x, kept, y, weights *tensor.Tensor) {
	checkMix("MixStreams", x, kept, y, weights)
	c := d.begin("mixstreams", "mix_streams", x.DType(), keptAs(kept, x))
	c.tensor(x)
	c.tensor(kept)
	c.tensor(y)
	c.tensor(weights)
	c.int(x.Len())
	c.perVector(x)
}

// MixStreamsGrad implements device.Device. Scratch holds each block's sums.
func (d *Device) MixStreamsGrad(dx, dy, dweights, kept, y, weights *tensor.Tensor) {
	const op = "MixStreamsGrad"
	checkMix(op, dx, kept, y, weights)
	shape(op, "dy", dy, dx.Rows(), dx.Cols())
	dtype(op, "dy", dy, dx.DType())
	length(op, "dweights", dweights, 2)
	dtype(op, "dweights", dweights, dx.DType())
	blocks := ceilDiv(dx.Bytes(), mixStretch)
	sums := d.scratch(16 * blocks)
	c := d.begin("mixstreams", "mix_streams_grad", dx.DType(), keptAs(kept, dx))
	c.tensor(dx)
	c.tensor(dy)
	c.pointer(sums)
	c.tensor(kept)
	c.tensor(y)
	c.tensor(weights)
	c.int(dx.Len())
	c.launch(blocks, 256, 0)

	c = d.begin("mixstreams", "add_sums", dx.DType(), keptAs(kept, dx))
	c.tensor(dweights)
	c.pointer(sums)
	c.int(blocks)
	c.launch(1, 256, 0)
}

// keptAs returns the define for kept's storage, or x's if kept is nil.
func keptAs(kept, x *tensor.Tensor) define {
	if kept == nil {
		kept = x
	}
	return define{"S", typeName(kept.DType())}
}

func checkMix(op string, x, kept, y, weights *tensor.Tensor) {
	dtype(op, "x", x, arithmetic(x))
	shape(op, "y", y, x.Rows(), x.Cols())
	dtype(op, "y", y, x.DType())
	length(op, "weights", weights, 2)
	dtype(op, "weights", weights, x.DType())
	if kept != nil {
		shape(op, "kept", kept, x.Rows(), x.Cols())
		storage(op, "kept", kept, x.DType())
	}
}
