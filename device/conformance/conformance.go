package conformance

import (
	"slices"
	"testing"

	"anneal/device"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// Run checks every kernel of a device on random shapes, masks, storage formats and values, among them zeros of both
// signs, denormals and large numbers. It demands of each call that
//
//   - results are close to float64 (see compare.go);
//   - a second call gives the same bits;
//   - only the results change, not the sources or the memory around any tensor;
//   - a result that is only written is never read: its memory is full of NaN before the call.
//
// Then come the values that only some kernels must handle: NaN, infinities, extreme logits, exact rounding.
//
// All tensors lie in the device's shared memory.
func Run(t *testing.T, newDevice func(t *testing.T) device.Device) {
	b := newBench(t, newDevice(t))
	for _, k := range []struct {
		name string
		draw func(*scope) call
	}{
		{"MatMul", matMul},
		{"RMSNorm", rmsNorm},
		{"RMSNormAgain", rmsNormAgain},
		{"RMSNormGrad", rmsNormGrad},
		{"LayerNorm", layerNorm},
		{"LayerNormAgain", layerNormAgain},
		{"LayerNormGrad", layerNormGrad},
		{"WeightNorm", weightNorm},
		{"WeightNormGrad", weightNormGrad},
		{"QKNorm", qkNorm},
		{"QKNormGrad", qkNormGrad},
		{"RoPE", rope},
		{"Attention", attention},
		{"AttentionGrad", attentionGrad},
		{"AttentionCached", attentionCached},
		{"AttentionSinksGrad", sinksGrad},
		{"MergeAttention", mergeAttention},
		{"CopyRuns", copyRuns},
		{"LinearAttention", linearAttention},
		{"LinearAttentionGrad", linearAttentionGrad},
		{"LinearAttentionCached", linearAttentionCached},
		{"ShortConv", shortConv},
		{"ShortConvGrad", shortConvGrad},
		{"SwiGLU", swiGLU},
		{"SwiGLUGrad", swiGLUGrad},
		{"GeGLU", geGLU},
		{"GeGLUGrad", geGLUGrad},
		{"ReLUSquared", reluSquared},
		{"ReLUSquaredGrad", reluSquaredGrad},
		{"MixStreams", mixStreams},
		{"MixStreamsGrad", mixStreamsGrad},
		{"AddValues", addValues},
		{"AddValuesGrad", addValuesGrad},
		{"GELU", gelu},
		{"GELUGrad", geluGrad},
		{"Route", route},
		{"RouteGrad", routeGrad},
		{"Dispatch", dispatch},
		{"TakeRows", takeRows},
		{"MixRows", mixRows},
		{"WeighRows", weighRows},
		{"GateRows", gateRows},
		{"GateRowsGrad", gateRowsGrad},
		{"Embedding", embedding},
		{"EmbeddingGrad", embeddingGrad},
		{"CrossEntropy", crossEntropy},
		{"Softcap", softcap},
		{"AdamW", adamW},
		{"Momentum", momentum},
		{"Lion", lion},
		{"AdEMAMix", adEMAMix},
		{"Descend", descend},
		{"Adafactor", adafactor},
		{"Sums", sums},
		{"SumRows", sumRows},
		{"Copy", copies},
		{"Add", adds},
		{"Scale", scales},
		{"Dropout", dropout},
		{"Zero", zero},
		{"Combine", combine},
		{"MaxAbs", maxAbs},
		{"Quantize", quantize},
		{"QuantizeBlocks", quantizeBlocks},
		{"RoundStochastic", roundStochastic},
		{"EqualiseRows", equaliseRows},
		{"Sophia", sophia},
		{"MeanSquare", meanSquare},
		{"Anchor", anchor},
	} {
		t.Run(k.name, rapid.MakeCheck(func(rt *rapid.T) {
			s := newScope(rt, b)
			c := k.draw(s)
			s.check(&c)
		}))
	}
	runSpecial(t, b)
}

// A call is one use of a kernel.
type call struct {
	run func(d device.Device)
	out []*tensor.Tensor // tensors that run changes, in the order of the references
	// The formula in float64, and in float32 to measure the error of the precision. They see the tensors before run; w
	// selects how to perturb the values that they read (see read).
	exact, naive func(w uint64) [][]float64

	factor  float64      // how much worse than naive the kernel may be; 0 means 2
	rounds  tensor.DType // format in which an intermediate value is stored
	terms   float64      // magnitude of the terms of a difference, if they may be far larger than the result
	spread  float64      // a row's largest number over its deviation, for results that depend on x − mean
	exactly bool         // there is one right answer
}

// formulas sets a call's references from one generic function.
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

// read returns the elements of a tensor as T. Unless w is 0 each is off by up to two units in the last place of
// float32: the float32 formulas are evaluated for several w, so that no lucky rounding makes a hard problem look easy.
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

// check runs the call twice and compares it with its references.
func (s *scope) check(c *call) {
	s.Helper()
	before := s.snapshot()
	exact := c.exact(0)
	var naive [][][]float64
	if s.wide != tensor.F64 {
		for w := range uint64(4) {
			naive = append(naive, c.naive(w+1))
		}
	}
	c.run(s.Device)
	s.wait(s.T)
	after := s.snapshot()
	for i := range s.buffers {
		copy(s.buffers[i].memory, before[i])
	}
	c.run(s.Device)
	s.wait(s.T)
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
