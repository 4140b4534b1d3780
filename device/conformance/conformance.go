package conformance

import (
	"math"
	"slices"
	"testing"

	"anneal/device"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// Run checks every kernel of a device on random shapes, masks, storage formats and values, among them zeros of both signs,
// denormals and large numbers. It demands of each call that
//
//   - results are close to float64 (see check.go);
//   - a second call gives the same bits;
//   - nothing but the results changes, neither the sources nor memory around any tensor;
//   - nothing is read of a result that is only written: such memory is full of NaN before.
//
// Then come the values that only some kernels must handle: NaN, infinities, extreme logits, exact rounding.
func Run(t *testing.T, newDevice func(t *testing.T) device.Device) {
	d := newDevice(t)
	for _, k := range []struct {
		name string
		draw func(*scope) call
	}{
		{"MatMul", matMul},
		{"RMSNorm", rmsNorm},
		{"RMSNormAgain", rmsNormAgain},
		{"RMSNormGrad", rmsNormGrad},
		{"QKNorm", qkNorm},
		{"QKNormGrad", qkNormGrad},
		{"RoPE", rope},
		{"Attention", attention},
		{"AttentionGrad", attentionGrad(d)},
		{"SwiGLU", swiGLU},
		{"SwiGLUGrad", swiGLUGrad},
		{"Embedding", embedding},
		{"EmbeddingGrad", embeddingGrad},
		{"CrossEntropy", crossEntropy},
		{"AdamW", adamW},
		{"Sums", sums},
		{"Copy", copies},
		{"Add", adds},
		{"Zero", zero},
	} {
		t.Run(k.name, rapid.MakeCheck(func(rt *rapid.T) {
			s := newScope(rt)
			c := k.draw(s)
			s.check(d, &c)
		}))
	}
	runSpecial(t, d)
}

// A call is one use of a kernel.
type call struct {
	run func(d device.Device)
	out []*tensor.Tensor // what run changes, in the order of the references
	// The formula in float64, and in float32 as the measure of what the precision costs. They see the tensors before run; w says
	// how to wiggle what they read (see read).
	exact, naive func(w uint64) [][]float64

	factor  float64 // how much worse than naive the kernel may be; 0 means 2
	rounds  bool    // an intermediate value is stored in BF16
	exactly bool    // there is one right answer
}

// formulas sets a call's references, which are one generic function.
func (c *call) formulas(f64 func(w uint64) [][]float64, f32 func(w uint64) [][]float32) {
	c.exact = f64
	c.naive = func(w uint64) [][]float64 {
		var wide [][]float64
		for _, x := range f32(w) {
			y := make([]float64, len(x))
			for i, v := range x {
				y[i] = float64(v)
			}
			wide = append(wide, y)
		}
		return wide
	}
}

// read returns the elements of a tensor as T. Unless w is 0 each is off by up to two units in the last place of float32: the
// float32 formulas are evaluated for several w, so that no lucky rounding makes a hard problem look easy.
func read[T tensor.Number](t *tensor.Tensor, w uint64) []T {
	x := make([]T, t.Len())
	rng := tensor.NewRNG(w, tensor.PurposeRound, 0)
	for i := range x {
		v := t.Float64(i)
		if w != 0 {
			v *= 1 + (rng.Float64(uint64(i))-0.5)*0x1p-21
		}
		x[i] = T(v)
	}
	return x
}

// A scope draws the tensors of one call and watches their memory.
type scope struct {
	*rapid.T
	act, wide tensor.DType // of activations, and of everything else
	seed      uint64
	buffers   []buffer
}

type buffer struct {
	t      *tensor.Tensor
	memory []byte // with margins
}

const margin = 128 // bytes before and after each tensor

func newScope(rt *rapid.T) *scope {
	s := &scope{T: rt, wide: tensor.F32, seed: rapid.Uint64().Draw(rt, "seed")}
	s.act = rapid.SampledFrom([]tensor.DType{tensor.F32, tensor.BF16, tensor.F64}).Draw(rt, "storage")
	if s.act == tensor.F64 {
		s.wide = tensor.F64
	}
	return s
}

// size draws a dimension: mostly small, sometimes around the sizes at which kernels cut their work.
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
	return rapid.SampledFrom([]tensor.DType{tensor.F32, tensor.BF16}).Draw(s.T, name)
}

// empty returns a tensor full of NaN, for results.
func (s *scope) empty(dt tensor.DType, shape ...int) *tensor.Tensor {
	n := dt.Size()
	for _, d := range shape {
		n *= d
	}
	memory := make([]byte, n+2*margin)
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

// fill writes normal numbers, and about one in sixteen each of: a zero of either sign, a denormal, a
// number four times larger.
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

// check runs the call twice and holds it against its references.
func (s *scope) check(d device.Device, c *call) {
	s.Helper()
	before := s.snapshot()
	exact := c.exact(0)
	var naive [][][]float64
	if s.wide != tensor.F64 {
		for w := range uint64(4) {
			naive = append(naive, c.naive(w+1))
		}
	}
	c.run(d)
	after := s.snapshot()
	for i := range s.buffers {
		copy(s.buffers[i].memory, before[i])
	}
	c.run(d)
	for i, again := range s.snapshot() {
		b := s.buffers[i]
		if !slices.Equal(again, after[i]) {
			s.Fatalf("tensor %d, %v: a second call gives other bits", i, b.t)
		}
		if slices.Contains(c.out, b.t) {
			clear(again[margin : len(again)-margin])
			clear(before[i][margin : len(again)-margin])
		}
		if !slices.Equal(again, before[i]) {
			s.Fatalf("tensor %d, %v: the call changed a source, or memory around a tensor", i, b.t)
		}
	}
	for i, t := range c.out {
		var n [][]float64
		for _, all := range naive {
			n = append(n, all[i])
		}
		if err := c.compare(t, exact[i], n); err != nil {
			s.Fatalf("result %d: %v", i, err)
		}
	}
}

func (s *scope) snapshot() [][]byte {
	var all [][]byte
	for _, b := range s.buffers {
		all = append(all, slices.Clone(b.memory))
	}
	return all
}
