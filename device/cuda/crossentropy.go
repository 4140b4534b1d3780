//go:build cuda && linux

package cuda

import (
	"anneal/device"
	"anneal/tensor"
)

// crossEntropyThreads is the largest number of threads per row of logits. Few large blocks keep the rows, which are
// read twice, in the cache.
const crossEntropyThreads = 1024

// CrossEntropy implements device.Device. The loss is NaN if a target is neither a column nor ignored nor elsewhere.
func (d *Device) CrossEntropy(loss, dlogits, logits, targets *tensor.Tensor, o device.LossOptions) {
	const op = "CrossEntropy"
	rows, cols, wide := logits.Rows(), logits.Cols(), arithmetic(logits)
	if o.Given == nil {
		checkWide(op, "loss", loss, rows, wide)
	} else {
		checkWide(op, "the given log Z", o.Given, rows, wide)
	}
	length(op, "targets", targets, rows)
	dtype(op, "targets", targets, tensor.I32)
	storage(op, "logits", logits, wide)
	if o.LogZ != nil {
		checkWide(op, "log Z", o.LogZ, rows, wide)
	}
	if o.Behind != nil {
		checkWide(op, "behind", o.Behind, rows, wide)
	}
	gradient := logits // gives the storage if there is no dlogits
	if !dlogits.IsZero() {
		shape(op, "dlogits", dlogits, rows, cols)
		storage(op, "dlogits", dlogits, wide)
		gradient = dlogits
	}
	if o.Teacher != nil {
		panic("cuda: " + op + ": a teacher has no kernel")
	}
	if o.Scale == 0 {
		o.Scale = 1
	}
	drawn := 0
	if o.Labels != (tensor.RNG{}) {
		drawn = 1
	}
	c := d.begin("crossentropy", "cross_entropy", logits.DType(), stored("S", gradient))
	c.tensor(loss)
	c.tensor(dlogits)
	c.tensor(o.LogZ)
	c.tensor(o.Behind)
	c.tensor(o.Given)
	c.tensor(logits)
	c.tensor(targets)
	c.int(cols)
	c.double(o.Softcap)
	c.double(o.ZLoss)
	c.double(o.Scale)
	c.int(drawn)
	c.random(o.Labels)
	c.word(o.FirstLabel)
	c.launch(rows, rowThreads(cols+pack, crossEntropyThreads), 0)
}

// Likeliest implements device.Device. It has no kernel yet: a run that needs it is refused (config.CheckKernels).
func (d *Device) Likeliest(ids, p, rest, logits *tensor.Tensor, temperature float64) {
	panic("cuda: Likeliest has no kernel")
}
