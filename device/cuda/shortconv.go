//go:build cuda && linux

package cuda

import (
	"fmt"

	"anneal/device"
	"anneal/tensor"
)

// ShortConv implements device.Device.
func (d *Device) ShortConv(out, x, taps *tensor.Tensor, mask device.Mask) {
	const op = "ShortConv"
	checkShortConv(op, x, taps, mask)
	shape(op, "out", out, x.Rows(), x.Cols())
	dtype(op, "out", out, x.DType())
	c := d.begin("shortconv", "short_conv", x.DType())
	c.tensor(out)
	c.convolution(x, taps, mask)
	c.launch(ceilDiv(x.Len(), packThreads), packThreads, 0)
}

// ShortConvGrad implements device.Device. Scratch holds the sums for dtaps of each stretch of tokens.
func (d *Device) ShortConvGrad(dx, dtaps, dout, x, taps *tensor.Tensor, mask device.Mask) {
	const op, threads = "ShortConvGrad", 128
	checkShortConv(op, x, taps, mask)
	rows, cols := x.Rows(), x.Cols()
	shape(op, "dx", dx, rows, cols)
	dtype(op, "dx", dx, x.DType())
	shape(op, "dout", dout, rows, cols)
	dtype(op, "dout", dout, x.DType())
	checkWide(op, "dtaps", dtaps, taps.Len(), arithmetic(x))
	per := max(64, ceilDiv(rows, 128))
	blocks := ceilDiv(rows, per)
	sums := d.scratch(blocks * taps.Len() * taps.DType().Size())
	c := d.begin("shortconv", "short_conv_grad", x.DType())
	c.tensor(dx)
	c.pointer(sums)
	c.tensor(dout)
	c.convolution(x, taps, mask)
	c.int(per)
	c.grid(ceilDiv(cols, threads), blocks, 1, threads, 0)
	d.addColumns(dtaps, sums, blocks, taps.Len())
}

// convolution adds what both kernels read.
func (c *call) convolution(x, taps *tensor.Tensor, mask device.Mask) {
	c.tensor(x)
	c.tensor(taps)
	c.optional(mask.Start)
	c.int(x.Rows())
	c.int(x.Cols())
	c.int(mask.Len)
	c.int(taps.Cols())
}

func checkShortConv(op string, x, taps *tensor.Tensor, mask device.Mask) {
	const most = 16 // taps, as in shortconv.cu
	storage(op, "x", x, arithmetic(x))
	shape(op, "taps", taps, x.Cols(), taps.Cols())
	dtype(op, "taps", taps, arithmetic(x))
	if taps.Cols() > most || mask.Len < 1 || x.Rows()%mask.Len != 0 {
		panic(fmt.Sprintf("cuda: %s: %v filtered by %v in rows of %d", op, x, taps, mask.Len))
	}
	if mask.Start != nil {
		dtype(op, "mask.Start", mask.Start, tensor.I32)
		length(op, "mask.Start", mask.Start, x.Rows())
	}
}
