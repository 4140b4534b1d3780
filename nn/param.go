package nn

import (
	"runtime"
	"sync"

	"anneal/autograd"
	"anneal/device"
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

// String returns the role's name.
func (r Role) String() string {
	return [...]string{"matrix", "embedding", "head", "norm", "bias", "scalar"}[r]
}

// A Param is one trained tensor of a model.
type Param struct {
	autograd.Param
	Name  string
	Role  Role
	Std   float64   // of the initial normal distribution; 0 means zero. Fused weights have it per part, gains start at one
	Start []float64 // initial values of scalars, and of biases that do not start at zero
	// Parts lists the parts of a fused weight as consecutive rows: q, k and v projections are one [(H+2K)·E, D]
	// matrix.
	Parts []Part
	// LRScale and DecayScale multiply the learning rate and the weight decay of the parameter's group, for rules that
	// depend on its shape, such as muP. 0 means 1.
	LRScale, DecayScale float64
	// Growth is the size around the parameter relative to muP's base model; 1 without muP.
	Growth Growth
}

// Growth is the growth of the two sides of a weight [out, in], and of the number of layers that write to the residual
// stream. Vectors, and tables with one row per token, grow on one side only.
type Growth struct{ In, Out, Depth float64 }

// A Part is a named range of rows of a fused weight, in the layout of other tools.
type Part struct {
	Name string
	Rows int
	Std  float64 // like Param.Std
}

// Init writes p's initial values into memory of m. They are a pure function of the seed, the index of the parameter
// in the model and the index of the element.
func (p *Param) Init(m device.Memory, seed uint64, index int) {
	device.Fill(m, &p.Value, func(values *tensor.Tensor) { p.init(values, seed, index) })
}

// init writes p's initial values.
func (p *Param) init(values *tensor.Tensor, seed uint64, index int) {
	n := values.Len()
	if p.Role == Norm {
		for i := range n {
			values.SetFloat64(i, 1)
		}
		return
	}
	if p.Start != nil {
		for i, x := range p.Start {
			values.SetFloat64(i, x)
		}
		return
	}
	rng := tensor.NewRNG(seed, tensor.PurposeInit, uint32(index))
	if p.Parts == nil {
		fill(values, rng, p.Std, 0, n)
		return
	}
	from := 0
	for _, part := range p.Parts {
		to := from + part.Rows*values.Cols()
		fill(values, rng, part.Std, from, to)
		from = to
	}
}

// fill sets elements [from, to) to std times the numbers of the stream at those positions.
func fill(values *tensor.Tensor, rng tensor.RNG, std float64, from, to int) {
	const chunk = 1 << 14
	var wg sync.WaitGroup
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	for at := from; at < to; at += chunk {
		wg.Add(1)
		limit <- struct{}{}
		go func() {
			defer func() { <-limit; wg.Done() }()
			fillChunk(values, rng, std, at, min(at+chunk, to))
		}()
	}
	wg.Wait()
}

// fillChunk is fill on one goroutine. The stream yields four numbers at a time.
func fillChunk(values *tensor.Tensor, rng tensor.RNG, std float64, from, to int) {
	var f32 []float32 // the common case, without a conversion per element
	if values.DType() == tensor.F32 {
		f32 = values.F32()
	}
	for at := from &^ 3; at < to; at += 4 {
		z := rng.Normals(uint64(at / 4))
		for i := max(at, from); i < min(at+4, to); i++ {
			x := std*z[i-at] + 0 // + 0 turns −0 into 0
			if f32 != nil {
				f32[i] = float32(x)
			} else {
				values.SetFloat64(i, x)
			}
		}
	}
}
