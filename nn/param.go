package nn

import (
	"anneal/autograd"
	"anneal/tensor"
)

// A Role is the kind of a parameter. Optimizers, weight decay and initialisation depend on it.
type Role int

// The roles.
const (
	Matrix    Role = iota // a hidden weight [out, in]
	Embedding             // token table [V, D]
	Head                  // output projection [V, D]
	Norm                  // gain of a norm [D]
	Bias                  // offset of a layer [out]
	Scalar                // learned factors, a few numbers per model
)

// Roles is how many roles there are.
const Roles = int(Scalar) + 1

// String returns the role's name.
func (r Role) String() string {
	return [...]string{"matrix", "embedding", "head", "norm", "bias", "scalar"}[r]
}

// A Param is one trained tensor of a model. It is declared with its properties, then placed, then allocated. Only the
// Region that this rank has takes memory.
type Param struct {
	autograd.Param
	Name   string
	Number int // in the whole model
	Role   Role
	Shape  []int  // of the whole parameter
	Region Region // what of it is here
	// Regions are the regions that the peers of tensor parallelism have, by rank; nil if each peer has the whole.
	Regions []Region
	// Partial describes which rows of the gradient are a sum over peers of tensor parallelism; zero for none.
	Partial Partial
	First   int // of a Piece: index of its first element in the region
	// standard deviation of the initial normal distribution; 0 means zeros. Fused weights have it per part, gains
	// start at one
	Std   float64
	Start []float64 // initial values of scalars, and of biases that do not start at zero
	// Parts lists the parts of a fused weight as consecutive rows: q, k and v projections are one [(H+2K)·E, D]
	// matrix. Tensor parallelism cuts every part by itself.
	Parts []Part
	// FP8Products allows the products of a matrix to have FP8 operands, if the policy asks for them.
	FP8Products bool
	// Looked marks a table whose rows begin the residual stream: tokens or positions.
	Looked bool
	// Share is the share of the elements that one token uses, for experts. 0 means 1.
	Share float64
	// LRScale and DecayScale multiply the learning rate and the weight decay of the parameter's group, EpsScale the ε
	// of Adam, for rules that depend on its shape, such as muP. 0 means 1.
	LRScale, DecayScale, EpsScale float64
	// Growth is the size around the parameter relative to muP's base model; 1 without muP.
	Growth Growth
}

// Growth is the growth of the two sides of a weight [out, in], and of the number of layers that write to the residual
// stream. Vectors, and tables with one row per token, grow on one side only.
type Growth struct{ In, Out, Depth float64 }

// Partial says that the gradient of some local rows is the sum of gradients that several peers compute.
type Partial struct{ Rows, Peers Span }

// A Part is a named range of rows of a fused weight, in the layout of other tools.
type Part struct {
	Name string
	Rows int
	Std  float64 // like Param.Std
}

// Declare returns a parameter that has no memory yet. Its region is the whole parameter until Place.
func Declare(name string, role Role, shape ...int) *Param {
	p := &Param{Name: name, Role: role, Shape: shape}
	p.Place(Whole(shape))
	return p
}

// Len returns the number of elements of the whole parameter.
func (p *Param) Len() int { return product(p.Shape) }

// Active returns the number of elements that one token uses.
func (p *Param) Active() float64 {
	if p.Share == 0 {
		return float64(p.Len())
	}
	return p.Share * float64(p.Len())
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// Place sets the region of the parameter that this rank has. Call it before Allocate.
func (p *Param) Place(r Region) { p.Region = r }

// Allocate takes memory for p's region: for the value in values with dtype weight and, unless grads is nil, for the
// gradient in grads with dtype grad.
func (p *Param) Allocate(values *tensor.Arena, weight tensor.DType, grads *tensor.Arena, grad tensor.DType) {
	shape := p.Region.Shape()
	p.Value = values.New(weight, shape...)
	if grads != nil && !p.Gradless() {
		p.Grad = grads.New(grad, shape...)
	}
}

// Gradless reports whether p has no gradient: it is frozen and large. Frozen gains, biases and tables of values keep a
// gradient that is never read, so that operations need not check.
func (p *Param) Gradless() bool { return p.Frozen && (p.Role == Matrix || p.Role == Head || p.Looked) }

// Format returns the dtype in which optimizers see p: its gradient's, or its value's if it has no gradient.
func (p *Param) Format() tensor.DType {
	if p.Grad.DType() == tensor.Invalid {
		return p.Value.DType()
	}
	return p.Grad.DType()
}

// Piece returns elements [from, to) of p's region as a parameter that shares its memory, for optimizers that treat
// every element alike. If from is a multiple of [device.Stretch], results do not depend on where the cuts are.
func (p *Param) Piece(from, to int) *Param {
	piece := *p
	piece.Value, piece.Grad = run(&p.Value, from, to), run(&p.Grad, from, to)
	piece.First += from
	return &piece
}

// run returns elements [from, to) of t in one dimension; t may have no memory.
func run(t *tensor.Tensor, from, to int) tensor.Tensor {
	if t.IsZero() {
		return *t
	}
	flat := t.Reshape(t.Len())
	return flat.Slice(from, to)
}

// OnePass reports whether a micro-batch adds to each element of p's gradient exactly once, with one rounding.
// Gradients of several micro-batches then add up in place to the same bits as if each was computed from zero and then
// added. Other gradients are sums of pieces: those of tables, heads, gains, biases and scalars, and partial ones.
func (p *Param) OnePass() bool { return p.Role == Matrix && p.Partial == (Partial{}) }
