//go:build cuda && linux

package cuda

import (
	"anneal/device/cuda/driver"
	"anneal/tensor"
)

// LayerNorm implements device.Device.
func (d *Device) LayerNorm(y, xhat, rstd, x, gain, bias *tensor.Tensor, eps float64) {
	const op = "LayerNorm"
	wide := arithmetic(x)
	checkNorm(op, y, xhat, gain, x.Rows(), x.Cols(), wide)
	checkWide(op, "x", x, x.Len(), wide)
	checkWide(op, "rstd", rstd, x.Rows(), wide)
	checkWide(op, "bias", bias, x.Cols(), wide)
	c := d.begin("layernorm", "layer_norm", y.DType(), stored("S", xhat))
	c.tensor(y)
	c.tensor(xhat)
	c.tensor(rstd)
	c.tensor(x)
	c.tensor(gain)
	c.tensor(bias)
	c.int(x.Cols())
	c.double(eps)
	c.launch(x.Rows(), rowThreads(x.Cols(), normThreads), 0)
}

// LayerNormAgain implements device.Device.
func (d *Device) LayerNormAgain(y, xhat, gain, bias *tensor.Tensor) {
	const op = "LayerNormAgain"
	checkNorm(op, y, xhat, gain, xhat.Rows(), xhat.Cols(), arithmetic(xhat))
	checkWide(op, "bias", bias, xhat.Cols(), arithmetic(xhat))
	c := d.begin("layernorm", "layer_norm_again", y.DType(), stored("S", xhat))
	c.tensor(y)
	c.tensor(xhat)
	c.tensor(gain)
	c.tensor(bias)
	c.int(xhat.Cols())
	c.launch(xhat.Rows(), rowThreads(xhat.Cols(), normThreads), 0)
}

// LayerNormGrad implements device.Device. Scratch holds the sums for dgain and dbias of each stretch of rows.
func (d *Device) LayerNormGrad(dx, dgain, dbias, dy, xhat, rstd, gain *tensor.Tensor) {
	const op = "LayerNormGrad"
	rows, cols, wide := dx.Rows(), dx.Cols(), arithmetic(dx)
	checkNorm(op, dy, xhat, gain, rows, cols, wide)
	checkWide(op, "dx", dx, dx.Len(), wide)
	checkWide(op, "rstd", rstd, rows, wide)
	checkWide(op, "dgain", dgain, cols, wide)
	checkWide(op, "dbias", dbias, cols, wide)
	blocks, per := sumBlocks(rows)
	sums := d.scratch(blocks * 2 * cols * wide.Size())
	c := d.begin("layernorm", "layer_norm_grad", dy.DType(), stored("S", xhat))
	c.tensor(dx)
	c.pointer(sums)
	c.tensor(dy)
	c.tensor(xhat)
	c.tensor(rstd)
	c.tensor(gain)
	c.int(rows)
	c.int(cols)
	c.int(per)
	c.launch(blocks, rowThreads(cols, normThreads), 2*wholePacks(cols)*wide.Size())
	d.addColumns(dgain, sums, blocks, 2*cols)
	d.addColumns(dbias, sums+driver.Pointer(cols*wide.Size()), blocks, 2*cols)
}
