//go:build cuda && linux

package cuda

import "anneal/tensor"

// normThreads is the largest number of threads per row of a norm. Threads loop over wider rows.
const normThreads = 256

// RMSNorm implements device.Device.
func (d *Device) RMSNorm(y, xhat, rstd, x, gain *tensor.Tensor, eps float64) {
	const op = "RMSNorm"
	checkNorm(op, y, xhat, gain, x.Rows(), x.Cols(), arithmetic(x))
	checkWide(op, "x", x, x.Len(), arithmetic(x))
	checkWide(op, "rstd", rstd, x.Rows(), arithmetic(x))
	c := d.begin("rmsnorm", "rms_norm", y.DType(), stored("S", xhat))
	c.tensor(y)
	c.tensor(xhat)
	c.tensor(rstd)
	c.tensor(x)
	c.tensor(gain)
	c.int(x.Cols())
	c.double(eps)
	c.launch(x.Rows(), rowThreads(x.Cols(), normThreads), 0)
}

// RMSNormAgain implements device.Device.
func (d *Device) RMSNormAgain(y, xhat, gain *tensor.Tensor) {
	checkNorm("RMSNormAgain", y, xhat, gain, xhat.Rows(), xhat.Cols(), arithmetic(xhat))
	c := d.begin("rmsnorm", "rms_norm_again", y.DType(), stored("S", xhat))
	c.tensor(y)
	c.tensor(xhat)
	c.tensor(gain)
	c.int(xhat.Cols())
	c.launch(xhat.Rows(), rowThreads(xhat.Cols(), normThreads), 0)
}

// RMSNormGrad implements device.Device. Scratch holds the sums for dgain of each stretch of rows.
func (d *Device) RMSNormGrad(dx, dgain, dy, xhat, rstd, gain *tensor.Tensor) {
	const op = "RMSNormGrad"
	rows, cols, wide := dx.Rows(), dx.Cols(), arithmetic(dx)
	checkNorm(op, dy, xhat, gain, rows, cols, wide)
	checkWide(op, "dx", dx, dx.Len(), wide)
	checkWide(op, "rstd", rstd, rows, wide)
	checkWide(op, "dgain", dgain, cols, wide)
	blocks, per := sumBlocks(rows)
	sums := d.scratch(blocks * cols * wide.Size())
	c := d.begin("rmsnorm", "rms_norm_grad", dy.DType(), stored("S", xhat))
	c.tensor(dx)
	c.pointer(sums)
	c.tensor(dy)
	c.tensor(xhat)
	c.tensor(rstd)
	c.tensor(gain)
	c.int(rows)
	c.int(cols)
	c.int(per)
	c.launch(blocks, rowThreads(cols, normThreads), wholePacks(cols)*wide.Size())
	d.addColumns(dgain, sums, blocks, cols)
}

// wholePacks returns n rounded up to packs.
func wholePacks(n int) int { return ceilDiv(n, pack) * pack }

// checkNorm checks the arguments that a norm and its gradient share: y is the result or its gradient.
func checkNorm(op string, y, xhat, gain *tensor.Tensor, rows, cols int, wide tensor.DType) {
	shape(op, "y", y, rows, cols)
	shape(op, "xhat", xhat, rows, cols)
	storage(op, "y", y, wide)
	storage(op, "xhat", xhat, wide)
	checkWide(op, "gain", gain, cols, wide)
}

// checkWide panics unless t has n elements of the dtype of arithmetic.
func checkWide(op, name string, t *tensor.Tensor, n int, wide tensor.DType) {
	length(op, name, t, n)
	dtype(op, name, t, wide)
}
