package conformance

import (
	"math"

	"anneal/device"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// A scope draws the tensors of one call and watches their memory.
type scope struct {
	*rapid.T
	bench
	act, wide tensor.DType // formats of activations and of everything else
	seed      uint64
	buffers   []buffer
}

type buffer struct {
	t      *tensor.Tensor
	memory []byte // with margins
}

const margin = 128 // bytes before and after each tensor

func newScope(rt *rapid.T, b bench) *scope {
	b.memory.Release(0)
	s := &scope{T: rt, bench: b, wide: tensor.F32, seed: rapid.Uint64().Draw(rt, "seed")}
	s.act = rapid.SampledFrom([]tensor.DType{tensor.F32, tensor.BF16, tensor.F16, tensor.F64}).Draw(rt, "storage")
	if s.act == tensor.F64 {
		s.wide = tensor.F64
	}
	return s
}

// size draws a dimension: mostly small, sometimes near the sizes at which kernels split their work.
func (s *scope) size(name string) int {
	if rapid.IntRange(0, 7).Draw(s.T, name+" is large") == 0 {
		return rapid.SampledFrom([]int{31, 32, 33, 48, 63, 64, 65, 96, 127, 128, 130, 193}).Draw(s.T, name)
	}
	return rapid.IntRange(1, 24).Draw(s.T, name)
}

// storage draws a format for one tensor of activations.
func (s *scope) storage(name string) tensor.DType {
	if s.act == tensor.F64 {
		return tensor.F64
	}
	return rapid.SampledFrom([]tensor.DType{tensor.F32, tensor.BF16, tensor.F16}).Draw(s.T, name)
}

// empty returns a tensor full of NaN, for results.
func (s *scope) empty(dt tensor.DType, shape ...int) *tensor.Tensor {
	n := dt.Size()
	for _, d := range shape {
		n *= d
	}
	all := s.memory.New(tensor.U8, n+2*margin)
	memory := all.Raw()
	for i := range memory {
		memory[i] = 0xff
	}
	t := tensor.View(dt, memory[margin:margin+n], shape...)
	s.buffers = append(s.buffers, buffer{&t, memory})
	return &t
}

// random returns a tensor that fill has filled.
func (s *scope) random(dt tensor.DType, shape ...int) *tensor.Tensor {
	t := s.empty(dt, shape...)
	s.fill(t)
	return t
}

// fill writes normal numbers, and about one in sixteen each of: a zero of either sign, a denormal, a number
// four times larger.
func (s *scope) fill(t *tensor.Tensor) {
	s.seed++
	rng := tensor.NewRNG(s.seed, tensor.PurposeInit, 0)
	for i := range t.Len() {
		v := rng.Normals(uint64(i))[0]
		switch kind := rng.Block(uint64(i + t.Len()))[0] % 32; kind {
		case 0, 1:
			v = math.Copysign(0, v)
		case 2, 3:
			v *= 1e-40
		case 4, 5:
			v *= 4
		}
		t.SetFloat64(i, v)
	}
}

// positive returns a tensor of positive numbers near 1.
func (s *scope) positive(dt tensor.DType, shape ...int) *tensor.Tensor {
	t := s.random(dt, shape...)
	for i := range t.Len() {
		t.SetFloat64(i, 0.5+math.Abs(t.Float64(i)))
	}
	return t
}

// ids returns integers, some of which are device.Elsewhere.
func (s *scope) ids(n, limit int) *tensor.Tensor {
	t := s.integers(n, limit)
	for i := range n {
		if i%7 == 3 {
			t.I32()[i] = device.Elsewhere
		}
	}
	return t
}

// integers returns n numbers in [0, limit).
func (s *scope) integers(n, limit int) *tensor.Tensor {
	t := s.empty(tensor.I32, n)
	s.seed++
	rng := tensor.NewRNG(s.seed, tensor.PurposeInit, 0)
	for i := range n {
		t.I32()[i] = int32(rng.Uint32(uint64(i)) % uint32(limit))
	}
	return t
}
