package nn

import (
	"runtime"
	"sync"

	"anneal/device"
	"anneal/tensor"
)

// Init writes p's initial values into memory of m. They are a pure function of the seed, the index of the parameter in
// the model, and the index of the element in the whole parameter, so a region gets the same values as the whole
// parameter has there.
func (p *Param) Init(m device.Memory, seed uint64, index int) {
	device.Fill(m, &p.Value, func(values *tensor.Tensor) {
		p.Region.Runs(p.Shape, func(local, global, n int) {
			from, to := max(local, p.First), min(local+n, p.First+values.Len()) // of a piece
			if from < to {
				p.init(values, seed, index, from-p.First, global+from-local, to-from)
			}
		})
	})
}

// init writes n initial values: those of elements global … of the parameter to elements local … of values.
func (p *Param) init(values *tensor.Tensor, seed uint64, index, local, global, n int) {
	switch {
	case p.Role == Norm:
		for i := range n {
			values.SetFloat64(local+i, 1)
		}
		return
	case p.Start != nil:
		for i, x := range p.Start[global : global+n] {
			values.SetFloat64(local+i, x)
		}
		return
	}
	s := stream{values, tensor.NewRNG(seed, tensor.PurposeInit, uint32(index)), local - global}
	if p.Parts == nil {
		s.fill(p.Std, global, global+n)
		return
	}
	from := 0
	for _, part := range p.Parts {
		to := from + part.Rows*p.Shape[1]
		s.fill(part.Std, max(from, global), min(to, global+n))
		from = to
	}
}

// stream is the sequence of a parameter's random numbers. Number i belongs to element i+shift of values.
type stream struct {
	values *tensor.Tensor
	rng    tensor.RNG
	shift  int
}

// fill sets the elements that numbers [from, to) belong to, each to std times its number.
func (s stream) fill(std float64, from, to int) {
	const chunk = 1 << 14
	var wg sync.WaitGroup
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	for at := from; at < to; at += chunk {
		wg.Add(1)
		limit <- struct{}{}
		go func() {
			defer func() { <-limit; wg.Done() }()
			s.fillChunk(std, at, min(at+chunk, to))
		}()
	}
	wg.Wait()
}

// fillChunk is fill on one goroutine. The stream yields four numbers at a time.
func (s stream) fillChunk(std float64, from, to int) {
	var f32 []float32 // the common case, without a conversion per element
	if s.values.DType() == tensor.F32 {
		f32 = s.values.F32()
	}
	for at := from &^ 3; at < to; at += 4 {
		z := s.rng.Normals(uint64(at / 4))
		for i := max(at, from); i < min(at+4, to); i++ {
			x := std*z[i-at] + 0 // + 0 turns −0 into 0
			if f32 != nil {
				f32[i+s.shift] = float32(x)
			} else {
				s.values.SetFloat64(i+s.shift, x)
			}
		}
	}
}
