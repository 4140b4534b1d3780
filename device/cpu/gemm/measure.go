package gemm

import (
	"math"
	"time"
	"unsafe"

	"anneal/device"
	"anneal/device/cpu/pool"
	"anneal/internal/isa"
	"anneal/tensor"
)

// Peak returns the GFLOP/s that the pool's workers together reach with the tier's best instruction for operands of a
// precision, in registers only: the upper limit of a matrix product. It takes about d. The fastest of 20 intervals
// counts for each worker, so that other load on the machine does not lower the result.
func Peak(t isa.Tier, operand tensor.DType, p *pool.Pool, d time.Duration) float64 {
	isa.Require(t)
	j := &peakJob{interval: d / 20, best: make([]float64, p.Threads())}
	j.loop, j.flops = peakLoop(t, operand)
	p.Run(len(j.best), j)
	var sum float64
	for _, v := range j.best {
		sum += v
	}
	return sum / 1e9
}

type peakJob struct {
	loop     func(n int)
	flops    int
	interval time.Duration
	best     []float64 // operations per second, by task
}

func (j *peakJob) Do(_, task int) {
	for range 20 {
		n := 0
		start := time.Now()
		for n == 0 || time.Since(start) < j.interval {
			j.loop(200)
			n += 200
		}
		j.best[task] = max(j.best[task], float64(n*j.flops)/time.Since(start).Seconds())
	}
}

const genericPeakFLOPs = 16 * 2 * 4

func genericPeak(n int) {
	var a [2]float32
	var b [4]float32
	for range n {
		s := genericSums(a[:1], a[1:], 0, b[:], 0, 8)
		b[0] = s[0][0]
	}
}

// A Case is a product of one shape from training.
type Case struct {
	Name    string
	Form    device.Form
	M, N, K int
}

// Cases returns the products of a training step of two Llama shapes, tiny (width 384, 4,096 tokens) and llama-98m
// (width 768, 2,048 tokens), the output layer in chunks of 512 tokens, and a square one.
func Cases() []Case {
	cases := []Case{
		{"square", device.NN, 1024, 1024, 1024}, {"square", device.NT, 1024, 1024, 1024},
		{"square", device.TN, 1024, 1024, 1024},
	}
	layer := func(name string, tokens, out, in int) { cases = append(cases, LayerCases(name, tokens, out, in)...) }
	layer("tiny qkv", 4096, 1152, 384)
	layer("tiny out", 4096, 384, 384)
	layer("tiny gate-up", 4096, 2048, 384)
	layer("tiny down", 4096, 384, 1024)
	layer("tiny head", 512, 4096, 384)
	layer("98m qkv", 2048, 2304, 768)
	layer("98m out", 2048, 768, 768)
	layer("98m gate-up", 2048, 4096, 768)
	layer("98m down", 2048, 768, 2048)
	layer("98m head", 512, 16384, 768)
	return cases
}

// LayerCases returns the three products of a layer from in to out features: forward, its input's gradient, its
// weight's.
func LayerCases(name string, tokens, out, in int) []Case {
	return []Case{
		{name, device.NT, tokens, out, in},
		{name, device.NN, tokens, in, out},
		{name, device.TN, out, in, tokens},
	}
}

// FLOPs returns the multiplications and additions of the product.
func (c Case) FLOPs() float64 { return 2 * float64(c.M) * float64(c.N) * float64(c.K) }

// Measure returns the GFLOP/s of a product, the best of as many runs as fit in d, at least one. Operands have the types
// of training: with BF16 operands, weights are F32, activations BF16, and a weight's gradient F32; with F32 operands
// everything is F32.
func (e *Engine) Measure(c Case, operand tensor.DType, d time.Duration) (float64, error) {
	ra, ca, rb, cb := c.M, c.K, c.K, c.N
	storeB, storeDst := tensor.F32, operand
	switch c.Form {
	case device.NT:
		rb, cb = cb, rb
	case device.TN:
		ra, ca = ca, ra
		storeB, storeDst = operand, tensor.F32
	}
	arena, err := tensor.NewArena("operands", 4*(ra*ca+rb*cb+c.M*c.N)+3*tensor.Align)
	if err != nil {
		return 0, err
	}
	defer arena.Close()
	a, b, dst := arena.New(operand, ra, ca), arena.New(storeB, rb, cb), arena.New(storeDst, c.M, c.N)
	fill(&a)
	fill(&b)
	opt := device.MatMulOptions{Operand: operand}
	e.MatMul(&dst, &a, &b, c.Form, opt)
	best := time.Duration(math.MaxInt64)
	for start := time.Now(); best == math.MaxInt64 || time.Since(start) < d; {
		t := time.Now()
		e.MatMul(&dst, &a, &b, c.Form, opt)
		best = min(best, time.Since(t))
	}
	return c.FLOPs() / best.Seconds() / 1e9, nil
}

// fill gives every element a different value with magnitude between 1/2 and 1.
func fill(t *tensor.Tensor) {
	state := uint32(1)
	if t.DType() == tensor.BF16 {
		for i := range t.BF16() {
			state = state*1664525 + 1013904223
			t.BF16()[i] = tensor.BFloat16(0x3f00 | state>>25 | state>>8&0x8000)
		}
		return
	}
	words := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(t.Raw()))), t.Len())
	for i := range words {
		state = state*1664525 + 1013904223
		words[i] = 0x3f000000 | state>>9 | state<<23&0x80000000
	}
}
