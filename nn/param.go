package nn

import (
	"runtime"
	"sync"

	"anneal/autograd"
	"anneal/tensor"
)

// A Role is the kind of a parameter: optimizers, weight decay and initialisation go by it.
type Role int

// The roles.
const (
	Matrix    Role = iota // a hidden weight [out, in]
	Embedding             // token table [V, D]
	Head                  // output projection [V, D]
	Norm                  // gain of a norm [D]
	Bias                  // offset of a layer [out]
)

// String returns the role's name.
func (r Role) String() string { return [...]string{"matrix", "embedding", "head", "norm", "bias"}[r] }

// A Param is one trained tensor of a model.
type Param struct {
	autograd.Param
	Name string
	Role Role
	Std  float64 // of the initial normal distribution; 0 means all ones (gains)
	// Parts lists what a fused weight is made of, as consecutive rows: q, k and v projections are one [(H+2K)·E, D] matrix.
	Parts []Part
	// LRScale and DecayScale multiply the learning rate and the weight decay of the parameter's group, for rules that go by its
	// shape, such as muP. 0 means 1.
	LRScale, DecayScale float64
}

// A Part is a named run of rows of a fused weight, in the layout other tools know.
type Part struct {
	Name string
	Rows int
}

// Init fills p with its initial values: a pure function of the seed, the parameter's index in the model and the element.
func (p *Param) Init(seed uint64, index int) {
	if p.Std == 0 {
		for i := range p.Value.Len() {
			p.Value.SetFloat64(i, 1)
		}
		return
	}
	const chunk = 1 << 14
	rng := tensor.NewRNG(seed, tensor.PurposeInit, uint32(index))
	n := p.Value.Len()
	var wg sync.WaitGroup
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	for from := 0; from < n; from += chunk {
		wg.Add(1)
		limit <- struct{}{}
		go func() {
			defer func() { <-limit; wg.Done() }()
			p.initRange(rng, from, min(from+chunk, n))
		}()
	}
	wg.Wait()
}

// initRange fills elements [from, to); from is a multiple of 4.
func (p *Param) initRange(rng tensor.RNG, from, to int) {
	var f32 []float32 // the common case, without a conversion per element
	if p.Value.DType() == tensor.F32 {
		f32 = p.Value.F32()
	}
	for i := from; i < to; i += 4 {
		z := rng.Normals(uint64(i / 4))
		for j := range min(4, to-i) {
			if f32 != nil {
				f32[i+j] = float32(p.Std * z[j])
			} else {
				p.Value.SetFloat64(i+j, p.Std*z[j])
			}
		}
	}
}
