package bench

import (
	"time"

	"anneal/device"
	"anneal/device/cpu/gemm"
	"anneal/tensor"
)

// cardCases returns the matrix products of a training step of two models: gpt2-small on 16,384 tokens and a Llama of
// 1.1B parameters on 8,192; and square products.
func cardCases() []gemm.Case {
	var cases []gemm.Case
	for _, form := range []device.Form{device.NN, device.NT, device.TN} {
		cases = append(cases, gemm.Case{Name: "square", Form: form, M: 4096, N: 4096, K: 4096})
	}
	layer := func(name string, tokens, out, in int) {
		cases = append(cases, gemm.LayerCases(name, tokens, out, in)...)
	}
	layer("124m qkv", 16384, 2304, 768)
	layer("124m up", 16384, 3072, 768)
	layer("124m down", 16384, 768, 3072)
	layer("124m head", 4096, 50257, 768)
	layer("1.1b qkv", 8192, 6144, 2048)
	layer("1.1b gate-up", 8192, 11264, 2048)
	layer("1.1b down", 8192, 2048, 5632)
	layer("1.1b head", 4096, 32000, 2048)
	return cases
}

// cardFormats are the operand formats to measure, with their names.
var cardFormats = []struct {
	name    string
	operand tensor.DType
	fp8     [2]tensor.DType
}{
	{"bf16", tensor.BF16, [2]tensor.DType{}},
	{"fp8", tensor.BF16, [2]tensor.DType{tensor.F8E4M3, tensor.F8E4M3}},
	{"tf32", tensor.TF32, [2]tensor.DType{}},
	{"fp32", tensor.F32, [2]tensor.DType{}},
}

// CardGEMM measures the products of cases on a card, each for the time d, and calls each with every
// result. A nil cases means cardCases. Operands are stored as in training: weights in F32, so that their conversion
// is included in the time. For FP8 the conversion is included too; a device without FP8 products uses those of BF16.
func CardGEMM(dev device.Device, cases []gemm.Case, d time.Duration, each func(GEMMCase)) (*GEMMReport, error) {
	if cases == nil {
		cases = cardCases()
	}
	r := &GEMMReport{Tier: dev.Kernels(), Peak: PeakGFLOPS{BF16: dev.Peak(tensor.BF16), FP32: dev.Peak(tensor.F32)}}
	for _, f := range cardFormats {
		for _, c := range cases {
			rate, err := measureOn(dev, c, f.operand, f.fp8, d)
			if err != nil {
				return nil, err
			}
			g := GEMMCase{Name: c.Name, Form: c.Form.String(), M: c.M, N: c.N, K: c.K, DType: f.name, GFLOPS: rate}
			if peak := dev.Peak(f.operand); peak > 0 {
				g.FractionOfPeak = rate / peak
			}
			r.Cases = append(r.Cases, g)
			each(g)
		}
	}
	return r, nil
}

// measureOn returns the GFLOP/s of a product that is repeated for d.
func measureOn(dev device.Device, c gemm.Case, operand tensor.DType, fp8 [2]tensor.DType,
	d time.Duration) (float64, error) {
	shapes := map[device.Form][4]int{device.NN: {c.M, c.K, c.K, c.N}, device.NT: {c.M, c.K, c.N, c.K},
		device.TN: {c.K, c.M, c.K, c.N}}[c.Form]
	// formats of the activations, the other operand and the result
	storeA, storeB, storeDst := tensor.F32, tensor.F32, tensor.F32
	if operand == tensor.BF16 {
		storeA, storeDst = tensor.BF16, tensor.BF16
		if c.Form == device.TN { // a weight's gradient
			storeB, storeDst = tensor.BF16, tensor.F32
		}
		if fp8[0] != tensor.Invalid {
			storeB = tensor.BF16
		}
	}
	var a, b, dst tensor.Tensor
	layOut := func(arena *tensor.Arena) {
		a, b = arena.New(storeA, shapes[0], shapes[1]), arena.New(storeB, shapes[2], shapes[3])
		dst = arena.New(storeDst, c.M, c.N)
	}
	size := tensor.NewMeasure("operands")
	layOut(size)
	arena, err := dev.NewArena("operands", size.Used())
	if err != nil {
		return 0, err
	}
	defer arena.Close()
	layOut(arena)
	fillWave(dev, &a)
	fillWave(dev, &b)
	opt := device.MatMulOptions{Operand: operand, FP8: fp8}
	dev.MatMul(&dst, &a, &b, c.Form, opt) // warm-up: plans and scratch memory
	if err := dev.Wait(); err != nil {
		return 0, err
	}
	best := 0.0
	for begin, calls := time.Now(), 1; time.Since(begin) < d || best == 0; calls = min(2*calls, 64) {
		start := time.Now()
		for range calls {
			dev.MatMul(&dst, &a, &b, c.Form, opt)
		}
		if err := dev.Wait(); err != nil {
			return 0, err
		}
		best = max(best, c.FLOPs()*float64(calls)/time.Since(start).Seconds()/1e9)
	}
	return best, nil
}
