package optim

import (
	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// SOAP is Adam in the eigenbasis of Shampoo's preconditioner (Vyas et al. 2024, arXiv 2409.11321). Adam scales each
// weight separately. In a basis where the rows of the gradient are uncorrelated, and its columns too, this is nearly
// the scaling of a second-order method:
//
//	L ← β2·L + (1−β2)·G·Gᵀ;  R ← β2·R + (1−β2)·Gᵀ·G;  P, Q: eigenvectors of L and R, as columns
//	m ← β1·m + (1−β1)·G;  v ← β2·v + (1−β2)·(Pᵀ·G·Q)²
//	w ← w·(1 − lr·λ) − lr · P·(Pᵀ·m̂·Q / (√v̂ + ε))·Qᵀ
//
// Every k updates one step of power iteration, P ← qr(L·P), refreshes the eigenvectors; Gram–Schmidt computes qr. The
// first gradient only gives the first basis, by ten such steps from the identity, and moves no matrix; m̂ and v̂ count
// from the second. Each part of a fused weight has its own bases. Everything else (embeddings, head, gains and biases)
// uses AdamW.
//
// State of hidden matrices: 8 + 8·(R² + C²)/(R·C) bytes per parameter, 24 for a square one; 8 for the rest. Each update
// costs eight products like G·Q, about 1.3·(R+C)/B of the training operations at B tokens a step, and each refresh 6·n³
// operations per side. Defaults: β = (0.95, 0.95), lr = 3e-3, k = 10; a smaller k costs more and learns faster per
// step. Not where memory is short, nor for wide feed-forward layers: a matrix with R outputs takes 8·R² bytes for L
// and P.
type SOAP struct {
	Beta1, Beta2, Eps float64
	Every             int // k

	norm  Orthogonaliser // for norms
	basis GramSchmidt
	// Headers of the tensors of one part.
	value, grad, m, v, a, b, product tensor.Tensor
}

const (
	firstRounds = 10 // power iterations of the first basis
	// raise, a share of the norm, is added to all eigenvalues. It keeps rounding errors from turning the rows that
	// have no gradient.
	raise = 1e-5
)

// Rotates reports whether SOAP itself updates p; AdamW updates the other parameters.
func (o *SOAP) Rotates(p *nn.Param) bool { return p.Role == nn.Matrix && len(p.Shape) == 2 }

// Divide returns Parts for the matrices that SOAP rotates.
func (o *SOAP) Divide(p *nn.Param) Division {
	if o.Rotates(p) {
		return Parts
	}
	return Elements
}

func (o *SOAP) rest() AdamW { return AdamW{Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps} }

// Layout implements Optimizer: Adam's moments, and for each part L, R and their eigenvectors, as rows.
func (o *SOAP) Layout(a *tensor.Arena, p *nn.Param) State {
	s := o.rest().Layout(a, p)
	if !o.Rotates(p) {
		return s
	}
	for _, part := range parts(p) {
		dot, rows, cols := "", part.Rows, p.Value.Cols()
		if part.Name != "" {
			dot = "."
		}
		s = append(s,
			Entry{"l" + dot + part.Name, a.New(wide(p), rows, rows), 0},
			Entry{"r" + dot + part.Name, a.New(wide(p), cols, cols), 0},
			Entry{"p" + dot + part.Name, a.New(wide(p), rows, rows), 0},
			Entry{"q" + dot + part.Name, a.New(wide(p), cols, cols), 0})
	}
	return s
}

// Update implements Optimizer.
func (o *SOAP) Update(d device.Device, p *nn.Param, state State, s Step, scratch *tensor.Arena) {
	if !o.Rotates(p) {
		o.rest().Update(d, p, state, s, scratch)
		return
	}
	from := 0
	for i := range parts(p) {
		to := from + o.partRows(p, i)
		o.value, o.grad = p.Value.Slice(from, to), p.Grad.Slice(from, to)
		o.m, o.v = state[0].Slice(from, to), state[1].Slice(from, to)
		sides := sidesOf(state, i)
		o.step(d, &sides[2].Tensor, &sides[3].Tensor, s, scratch)
		o.observe(d, &sides[0].Tensor, device.NT, s.Scale, scratch) // G·Gᵀ
		o.observe(d, &sides[1].Tensor, device.TN, s.Scale, scratch) // Gᵀ·G
		from = to
	}
	switch {
	case s.T == 1:
		o.begin(d, p, state)
		for range firstRounds {
			o.Refresh(d, p, state, scratch)
		}
	case (s.T-1)%o.Every == 0:
		o.Refresh(d, p, state, scratch)
	}
}

// partRows returns the number of rows of part i.
func (o *SOAP) partRows(p *nn.Param, i int) int {
	if p.Parts == nil {
		return p.Value.Rows()
	}
	return p.Parts[i].Rows
}

// sidesOf returns L, R and their eigenvectors of part i.
func sidesOf(state State, i int) State { return state[2+4*i:][:4] }

// begin makes the first bases identities.
func (o *SOAP) begin(d device.Device, p *nn.Param, state State) {
	for i := range parts(p) {
		for k := 2; k < 4; k++ {
			vectors := &sidesOf(state, i)[k].Tensor
			d.Zero(vectors)
			d.Combine(vectors, vectors, vectors, device.Combination{Diagonal: 1})
		}
	}
}

// Refresh makes one power iteration for each basis of a parameter.
func (o *SOAP) Refresh(d device.Device, p *nn.Param, state State, scratch *tensor.Arena) {
	if !o.Rotates(p) {
		return
	}
	for i := range parts(p) {
		sides := sidesOf(state, i)
		for k := range 2 {
			o.iterate(d, &sides[k].Tensor, &sides[2+k].Tensor, scratch)
		}
	}
}

// step moves the weights, with the rows of p and q as bases. The first update has no basis yet.
func (o *SOAP) step(d device.Device, p, q *tensor.Tensor, s Step, scratch *tensor.Arena) {
	dtype, rows, cols := o.grad.DType(), o.grad.Rows(), o.grad.Cols()
	mark, opt := scratch.Mark(), device.MatMulOptions{Operand: dtype}
	o.a, o.b = scratch.New(dtype, rows, cols), scratch.New(dtype, rows, cols)
	if s.T == 1 {
		scratch.Release(mark)
		return
	}
	rotate := func(x *tensor.Tensor) { // a = p·x·qᵀ
		d.MatMul(&o.b, p, x, device.NN, opt)
		d.MatMul(&o.a, &o.b, q, device.NT, opt)
	}
	rotate(&o.grad)
	d.MeanSquare(&o.v, &o.a, o.Beta2, (1-o.Beta2)*s.Scale*s.Scale)
	d.Combine(&o.m, &o.m, &o.grad, device.Combination{X: o.Beta1, Y: (1 - o.Beta1) * s.Scale})
	rotate(&o.m)

	divide := AdamW{Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Eps}.constants(Step{
		T: s.T - 1, LR: -1, Scale: 1, EpsScale: s.EpsScale,
	})
	divide.Beta1, divide.Beta2 = 0, 1 // the kernel does not change the moments: b = m̂ / (√v̂ + ε)
	d.Zero(&o.b)
	d.AdamW(&o.b, &o.a, &o.a, &o.v, divide)

	d.MatMul(&o.a, p, &o.b, device.TN, opt)
	d.MatMul(&o.b, &o.a, q, device.NN, opt) // pᵀ·b·q
	d.Descend(&o.value, &o.b, device.Descend{LR: s.LR, Shrink: s.LR * s.Decay, Cautious: s.Cautious})
	scratch.Release(mark)
}

// observe adds the products of the gradient with itself to one side's mean.
func (o *SOAP) observe(d device.Device, side *tensor.Tensor, form device.Form, scale float64, scratch *tensor.Arena) {
	mark := scratch.Mark()
	o.product = scratch.New(side.DType(), side.Rows(), side.Rows())
	d.MatMul(&o.product, &o.grad, &o.grad, form, device.MatMulOptions{Operand: side.DType(), Symmetric: true})
	d.Combine(side, side, &o.product, device.Combination{X: o.Beta2, Y: (1 - o.Beta2) * scale * scale})
	scratch.Release(mark)
}

// iterate moves the rows of vectors towards the eigenvectors of a side.
func (o *SOAP) iterate(d device.Device, side, vectors *tensor.Tensor, scratch *tensor.Arena) {
	mark := scratch.Mark()
	o.product = scratch.New(side.DType(), side.Rows(), side.Rows())
	d.MatMul(&o.product, vectors, side, device.NN, device.MatMulOptions{Operand: side.DType()})
	norm := max(o.norm.norm(d, side), smallestNorm)
	d.Combine(vectors, &o.product, vectors, device.Combination{X: 1 / norm, Y: raise})
	o.basis.Run(d, vectors, scratch)
	scratch.Release(mark)
}
