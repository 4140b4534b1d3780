package optim

import (
	"cmp"
	"math"

	"anneal/device"
	"anneal/tensor"
)

// NewtonSchulz moves the singular values of a matrix close to 1 and keeps its singular vectors, with matrix products
// only. After a division by the norm, each step applies an odd polynomial to the singular values:
//
//	A = X·Xᵀ;  X ← a·X + b·A·X + c·A²·X = (a·I + b·A + c·A²)·X
//
// The polynomials are steep at 0 and do not converge to 1: the aim is to bring every value near 1 in few steps. A
// matrix with more rows than columns is transposed, so that A is as small as possible. Five steps cost 10·m²·(2n + m)
// operations for m = min(rows, columns) and n the other side.
type NewtonSchulz struct {
	Polynomials []Quintic // one per step
	Margin      float64   // factor by which the norm is enlarged, so that rounding cannot push a singular value above 1

	// Operand is BF16 for products whose operands are rounded to it, and 0 for products in the matrix's own format.
	Operand tensor.DType
}

// Quintic holds the coefficients a, b, c of a·x + b·x³ + c·x⁵.
type Quintic [3]float64

// Jordan is the iteration of Jordan et al. (2024, kellerjordan.github.io/posts/muon): one polynomial, five times. It
// maps singular values from 0.002 to 1 into [0.68, 1.21].
func Jordan() NewtonSchulz {
	p := Quintic{3.4445, -4.7750, 2.0315}
	return NewtonSchulz{Polynomials: []Quintic{p, p, p, p, p}, Margin: 1}
}

// PolarExpress is the iteration of Amsel et al. (2025, arXiv 2505.16932): the optimal polynomial for each step, given
// the steps before it. At the same cost it maps singular values from 0.001 to 1 into [0.84, 1.15].
func PolarExpress() NewtonSchulz {
	return NewtonSchulz{Polynomials: []Quintic{
		{8.156554524902461, -22.48329292557795, 15.878769915207462},
		{4.042929935166739, -2.808917465908714, 0.5000178451051316},
		{3.8916678022926607, -2.772484153217685, 0.5060648178503393},
		{3.285753657755655, -2.3681294933425376, 0.46449024233003106},
		{2.3465413258596377, -1.7097828382687081, 0.42323551169305323},
	}, Margin: 1.01}
}

// smallestNorm is the smallest divisor, as in PyTorch: a matrix of smaller norm counts as zero.
const smallestNorm = 1e-7

// FLOPs returns the operations of the matrix products that orthogonalise a rows×cols matrix.
func (n NewtonSchulz) FLOPs(rows, cols int) float64 {
	m, k := float64(min(rows, cols)), float64(max(rows, cols))
	return float64(len(n.Polynomials)) * 2 * m * m * (2*k + m)
}

// An Orthogonaliser holds the headers of the temporary tensors of an iteration, so that iterations do not allocate
// them.
type Orthogonaliser struct {
	other, gram, poly tensor.Tensor
	squares           device.Squares
	normed            [1]*tensor.Tensor
}

// norm returns the root of the sum of squares of x.
func (o *Orthogonaliser) norm(d device.Device, x *tensor.Tensor) float64 {
	o.normed[0] = x
	return math.Sqrt(o.squares.Sum(d, o.normed[:]...))
}

// Run orthogonalises x [rows, cols], F32 (or F64). It overwrites x and returns the result, which is x or in scratch
// memory. It needs scratch memory for a copy of x and two square matrices of the smaller side.
func (o *Orthogonaliser) Run(n NewtonSchulz, d device.Device, x *tensor.Tensor, scratch *tensor.Arena) *tensor.Tensor {
	rows, cols, dtype := x.Rows(), x.Cols(), x.DType()
	m := min(rows, cols)
	o.other = scratch.New(dtype, rows, cols)
	o.gram, o.poly = scratch.New(dtype, m, m), scratch.New(dtype, m, m)
	norm := max(o.norm(d, x), smallestNorm) * n.Margin
	d.Scale(x, 1/norm)
	y, opt := &o.other, device.MatMulOptions{Operand: cmp.Or(n.Operand, dtype)}
	symmetric := opt
	symmetric.Symmetric = true
	for _, p := range n.Polynomials {
		if rows <= cols {
			d.MatMul(&o.gram, x, x, device.NT, symmetric) // [m, m]
		} else {
			d.MatMul(&o.gram, x, x, device.TN, symmetric) // [m, m]
		}
		d.MatMul(&o.poly, &o.gram, &o.gram, device.NN, symmetric) // [m, m]
		d.Combine(&o.poly, &o.gram, &o.poly, device.Combination{X: p[1], Y: p[2], Diagonal: p[0]})
		if rows <= cols {
			d.MatMul(y, &o.poly, x, device.NN, opt)
		} else {
			d.MatMul(y, x, &o.poly, device.NN, opt)
		}
		x, y = y, x
	}
	return x
}
