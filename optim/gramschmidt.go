package optim

import (
	"math"

	"anneal/device"
	"anneal/tensor"
)

// GramSchmidt makes the rows of a square matrix orthonormal, from the first to the last. The first k rows span the
// same space as before. This is the Q of a QR decomposition of the transposed matrix, whose R has a positive diagonal.
//
// Within a block, each row is made orthogonal to the rows before it; then two matrix products make the rest of the
// matrix orthogonal to the block. Rounding leaves rows that were almost parallel not quite orthogonal, so everything
// is done twice (Giraud et al. 2005). It needs only the kernels for products and rows, and costs 4·n³ operations.
type GramSchmidt struct {
	rows, row, others, cross, size tensor.Tensor
}

// blockRows is the number of rows in a block.
const blockRows = 32

// Run orthonormalises x [n, n], F32 (or F64), in place. It needs scratch memory for blockRows·n numbers.
func (o *GramSchmidt) Run(d device.Device, x *tensor.Tensor, scratch *tensor.Arena) {
	for range 2 {
		n := x.Rows()
		for from := 0; from < n; from += blockRows {
			to := min(from+blockRows, n)
			o.rows = x.Slice(from, to)
			o.within(d, scratch)
			if to < n {
				o.others = x.Slice(to, n)
				o.deflate(d, &o.rows, scratch)
			}
		}
	}
}

// within orthonormalises the rows of a block.
func (o *GramSchmidt) within(d device.Device, scratch *tensor.Arena) {
	n := o.rows.Rows()
	for i := range n {
		o.row = o.rows.Slice(i, i+1)
		mark := scratch.Mark()
		o.size = scratch.New(o.row.DType(), 1)
		d.Zero(&o.size)
		d.EqualiseRows(&o.row, &o.size, 0) // the mean of its squares is 1
		d.Scale(&o.row, 1/math.Sqrt(float64(o.row.Cols())))
		scratch.Release(mark)
		if i+1 < n {
			o.others = o.rows.Slice(i+1, n)
			o.deflate(d, &o.row, scratch)
		}
	}
}

// deflate makes the other rows orthogonal to orthonormal ones: X ← X − (X·Bᵀ)·B.
func (o *GramSchmidt) deflate(d device.Device, basis *tensor.Tensor, scratch *tensor.Arena) {
	mark, opt := scratch.Mark(), device.MatMulOptions{Operand: basis.DType()}
	o.cross = scratch.New(basis.DType(), o.others.Rows(), basis.Rows())
	d.MatMul(&o.cross, &o.others, basis, device.NT, opt)
	opt.Scale, opt.Accumulate = -1, true
	d.MatMul(&o.others, &o.cross, basis, device.NN, opt)
	scratch.Release(mark)
}
