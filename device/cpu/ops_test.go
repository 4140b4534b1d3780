package cpu

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"anneal/device"
	"anneal/internal/filetest"
	"anneal/internal/isa"
	"anneal/tensor"
)

// gaussian returns a tensor of pseudo-random normal numbers.
func gaussian(seed uint32, dtype tensor.DType, shape ...int) *tensor.Tensor {
	t := empty(dtype, shape...)
	rng := tensor.NewRNG(uint64(seed), tensor.PurposeData, 0)
	for i := range t.Len() {
		t.SetFloat64(i, rng.Normals(uint64(i / 4))[i%4])
	}
	return t
}

func empty(dtype tensor.DType, shape ...int) *tensor.Tensor {
	n := dtype.Size()
	for _, d := range shape {
		n *= d
	}
	t := tensor.View(dtype, make([]byte, n+1)[:n], shape...)
	return &t
}

// ints returns n pseudo-random ids below limit.
func ints(seed uint32, n, limit int) *tensor.Tensor {
	rng := tensor.NewRNG(uint64(seed), tensor.PurposeData, 1)
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(rng.Uint32(uint64(i)) % uint32(limit))
	}
	return tensor.Of(ids)
}

// A call is one kernel with its tensors: run may change those of out, whose bits are compared.
type call struct {
	name string
	out  []*tensor.Tensor
	run  func(d *Device) float64
}

// calls returns calls of every kernel on rows of odd sizes, in the given storage of activations, and all their
// tensors.
func calls(rows int, act tensor.DType) (list []call, all []*tensor.Tensor) {
	keep := func(t *tensor.Tensor) *tensor.Tensor { all = append(all, t); return t }
	gaussian := func(seed uint32, dtype tensor.DType, shape ...int) *tensor.Tensor {
		return keep(gaussian(seed, dtype, shape...))
	}
	empty := func(dtype tensor.DType, shape ...int) *tensor.Tensor { return keep(empty(dtype, shape...)) }
	wide := tensor.F32
	if act == tensor.F64 {
		wide = tensor.F64
	}
	const cols, vocabulary, eps = 131, 517, 1e-5
	heads := device.Heads{Q: 4, KV: 2, Size: 22}
	void := func(f func(d *Device)) func(d *Device) float64 { return func(d *Device) float64 { f(d); return 0 } }
	add := func(name string, run func(d *Device) float64, out ...*tensor.Tensor) {
		list = append(list, call{name, out, run})
	}
	x, gain, dy := gaussian(1, wide, rows, cols), gaussian(2, wide, cols), gaussian(3, act, rows, cols)
	y, xhat, rstd := empty(act, rows, cols), empty(act, rows, cols), empty(wide, rows)
	add("RMSNorm", void(func(d *Device) { d.RMSNorm(y, xhat, rstd, x, gain, eps) }), y, xhat, rstd)
	again := empty(act, rows, cols)
	add("RMSNormAgain", void(func(d *Device) { d.RMSNormAgain(again, xhat, gain) }), again)
	dx, dgain := gaussian(4, wide, rows, cols), gaussian(5, wide, cols)
	add("RMSNormGrad", void(func(d *Device) { d.RMSNormGrad(dx, dgain, dy, xhat, rstd, gain) }), dx, dgain)
	weight, dweight, normGain, dnormGain := gaussian(48, act, rows, cols), gaussian(49, act, rows, cols),
		gaussian(50, wide, rows), gaussian(51, wide, rows)
	add("WeightNormGrad", void(func(d *Device) { d.WeightNormGrad(dweight, dnormGain, weight, normGain) }),
		dweight, dnormGain)
	add("WeightNorm", void(func(d *Device) { d.WeightNorm(weight, normGain) }), weight)

	norms := (heads.Q + heads.KV) * heads.Size
	qkv, qhat, qrstd := gaussian(6, act, rows, heads.Cols()), empty(act, rows, norms),
		empty(wide, rows, heads.Q+heads.KV)
	gq, gk, dgq, dgk := gaussian(7, wide, heads.Size), gaussian(8, wide, heads.Size), empty(wide, heads.Size),
		empty(wide, heads.Size)
	add("QKNorm", void(func(d *Device) { d.QKNorm(qkv, qhat, qrstd, gq, gk, heads, eps) }), qkv, qhat, qrstd)
	dqkv := gaussian(9, act, rows, heads.Cols())
	add("QKNormGrad", void(func(d *Device) { d.QKNormGrad(dqkv, dgq, dgk, qhat, qrstd, gq, gk, heads) }),
		dqkv, dgq, dgk)
	cos, sin := angles(wide, 40, heads.Size)
	pos := ints(10, rows, 40)
	add("RoPE", void(func(d *Device) { d.RoPE(qkv, cos, sin, pos, heads, false) }), qkv)
	pairs := heads
	pairs.Interleaved = true
	add("RoPE of neighbours", void(func(d *Device) { d.RoPE(qkv, cos, sin, pos, pairs, false) }), qkv)
	add("RoPE inverse", void(func(d *Device) { d.RoPE(dqkv, cos, sin, pos, heads, true) }), dqkv)

	gu, swi, dgu := gaussian(11, act, rows, 2*cols), empty(act, rows, cols), empty(act, rows, 2*cols)
	add("SwiGLU", void(func(d *Device) { d.SwiGLU(swi, gu) }), swi)
	add("SwiGLUGrad", void(func(d *Device) { d.SwiGLUGrad(dgu, nil, dy, gu) }), dgu)

	add("GeGLU", void(func(d *Device) { d.GeGLU(swi, gu) }), swi)
	add("GeGLUGrad", void(func(d *Device) { d.GeGLUGrad(dgu, nil, dy, gu) }), dgu)

	const nExperts, k = 7, 2
	router, chosen, weights := gaussian(41, wide, rows, nExperts), keep(tensor.Of(make([]int32, rows*k), rows, k)),
		empty(wide, rows, k)
	routeZ, sums, dlog := empty(wide, rows), gaussian(42, wide, nExperts), empty(wide, rows, nExperts)
	order, place, counts := ints(43, rows*k, 1), ints(43, rows*k, 1), ints(43, nExperts, 1)
	dweights, taken, mixed := gaussian(44, wide, rows, k), empty(act, rows*k, cols), gaussian(45, act, rows, cols)
	add("Route", void(func(d *Device) { d.Route(weights, chosen, routeZ, sums, router, true) }), weights,
		chosen, routeZ, sums)
	add("Dispatch", void(func(d *Device) { d.Dispatch(order, place, counts, chosen) }), order, place, counts)
	o := device.RouteOptions{Normalise: true, Balance: 0.1, ZLoss: 0.2}
	add("RouteGrad", void(func(d *Device) { d.RouteGrad(dlog, dweights, weights, chosen, routeZ, counts, router, o) }),
		dlog)
	add("TakeRows", void(func(d *Device) { d.TakeRows(taken, dy, order, 2) }), taken)
	add("MixRows", void(func(d *Device) { d.MixRows(mixed, taken, weights, place, true) }), mixed)
	other := gaussian(46, act, rows*k, cols)
	add("WeighRows", void(func(d *Device) { d.WeighRows(dweights, other, taken, weights, order) }),
		dweights, other, taken)
	gate, dgate, gated := gaussian(47, wide, rows), empty(wide, rows), empty(act, rows, cols)
	add("GateRows", void(func(d *Device) { d.GateRows(mixed, dy, gate) }), mixed)
	add("GateRowsGrad", void(func(d *Device) { d.GateRowsGrad(gated, dgate, mixed, dy, gate) }), gated, dgate)

	ids, table, emb := ints(12, rows, 17), gaussian(13, act, 17, cols), empty(wide, rows, cols)
	dtable := gaussian(14, wide, 17, cols)
	add("Embedding", void(func(d *Device) { d.Embedding(emb, table, ids) }), emb)
	add("EmbeddingGrad", void(func(d *Device) { d.EmbeddingGrad(dtable, x, ids) }), dtable)

	logits, targets, loss := gaussian(15, wide, rows, vocabulary), ints(16, rows, vocabulary), empty(wide, rows)
	targets.I32()[rows/2] = device.Ignored
	dlogits := empty(act, rows, vocabulary)
	add("CrossEntropy without gradient",
		void(func(d *Device) { d.CrossEntropy(loss, nil, logits, targets, device.LossOptions{}) }), loss)
	add("CrossEntropy", void(func(d *Device) { d.CrossEntropy(loss, dlogits, logits, targets, device.LossOptions{}) }),
		loss, dlogits)
	inPlace := gaussian(15, wide, rows, vocabulary)
	add("CrossEntropy in place",
		void(func(d *Device) { d.CrossEntropy(loss, inPlace, inPlace, targets, device.LossOptions{}) }), loss, inPlace)

	big := 3*chunk + 77
	p, g, m, v := gaussian(17, wide, big), gaussian(18, wide, big), gaussian(19, wide, big), empty(wide, big)
	add("AdamW", void(func(d *Device) {
		d.AdamW(p, g, m, v, device.AdamW{
			LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, Scale: 0.5, Correct1: 10, Correct2: 20,
		})
	}), p, m, v)
	blocks := (big + device.Block - 1) / device.Block
	m8, v8, mTop, vTop := empty(tensor.U8, big), empty(tensor.U8, big), gaussian(26, wide, blocks),
		gaussian(27, wide, blocks)
	d8 := void(func(d *Device) {
		d.AdamW8(p, g, m8, mTop, v8, vTop, device.AdamW{
			LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, Scale: 0.5, Correct1: 10, Correct2: 20,
		})
	})
	add("AdamW8", func(d *Device) float64 {
		for _, t := range []*tensor.Tensor{m8, v8, mTop, vTop} {
			d.Zero(t)
		}
		return d8(d)
	}, p, mTop, vTop)
	add("Momentum",
		void(func(d *Device) { d.Momentum(p, g, m, device.Momentum{LR: 1e-3, Beta: 0.9, Keep: 1, Scale: 0.5}) }), p, m)
	add("Lion", void(func(d *Device) { d.Lion(p, g, m, device.Lion{LR: 1e-3, Beta1: 0.9, Beta2: 0.99, Scale: 0.5}) }),
		p, m)
	slow := gaussian(21, wide, big)
	add("AdEMAMix", void(func(d *Device) {
		d.AdEMAMix(p, g, m, slow, v, device.AdEMAMix{
			LR: 1e-3, Beta1: 0.9, Beta2: 0.95, Beta3: 0.99, Alpha: 2, Eps: 1e-8, Scale: 0.5, Correct1: 10, Correct2: 20,
		})
	}), p, m, slow, v)
	matrix, mgrad := gaussian(22, wide, 77, 3001), gaussian(23, wide, 77, 3001)
	r, c := gaussian(24, wide, 77), gaussian(25, wide, 3001)
	factored := device.Adafactor{LR: 0.1, Beta2: 0, Eps: 1e-30, Clip: 1, MinScale: 1e-3, Shrink: 0.01, Scale: 0.25}
	add("Adafactor", void(func(d *Device) { d.Adafactor(matrix, mgrad, nil, r, c, factored) }), matrix, r, c)
	add("Adafactor whole", void(func(d *Device) { d.Adafactor(p, g, m, slow, nil, factored) }), p, m, slow)
	add("Descend", void(func(d *Device) { d.Descend(p, g, device.Descend{LR: 1e-3, Shrink: 1e-4}) }), p)
	a, narrow := gaussian(20, act, big), empty(act, big)
	var squares device.Squares
	ones := []*tensor.Tensor{a}
	add("SumSquares", func(d *Device) float64 { return squares.Sum(d, ones...) })
	add("Sum", func(d *Device) float64 { return d.Sum(a) })
	add("Copy", void(func(d *Device) { d.Copy(narrow, p) }), narrow)
	add("Copy back", void(func(d *Device) { d.Copy(v, narrow) }), v)
	add("Add", void(func(d *Device) { d.Add(narrow, g) }), narrow)
	add("Add to wide", void(func(d *Device) { d.Add(g, narrow) }), g)
	add("Zero", void(func(d *Device) { d.Zero(m) }), m)
	return list, all
}

func angles(dtype tensor.DType, positions, size int) (cos, sin *tensor.Tensor) {
	cos, sin = empty(dtype, positions, size/2), empty(dtype, positions, size/2)
	for i := range cos.Len() {
		angle := float64(i/(size/2)) * math.Pow(1e4, -2*float64(i%(size/2))/float64(size))
		cos.SetFloat64(i, math.Cos(angle))
		sin.SetFloat64(i, math.Sin(angle))
	}
	return cos, sin
}

var storages = []tensor.DType{tensor.F32, tensor.BF16, tensor.F64}

func TestResultsDoNotDependOnThreads(t *testing.T) {
	for _, tier := range []isa.Tier{isa.Tiers()[0], isa.Generic} {
		one := NewTier(tier, 1)
		defer one.Close()
		for _, act := range storages {
			want, _ := calls(301, act)
			reference := make([]float64, len(want))
			for i := range want {
				reference[i] = want[i].run(one)
			}
			for _, threads := range []int{2, 5} {
				many := NewTier(tier, threads)
				defer many.Close()
				got, _ := calls(301, act)
				for i := range want {
					if sum := got[i].run(many); math.Float64bits(sum) != math.Float64bits(reference[i]) {
						t.Errorf("%v %v %s: %v with 1 thread, %v with %d",
							tier, act, want[i].name, reference[i], sum, threads)
					}
				}
				for i := range want { // compared after all calls, because kernels share tensors
					for k := range want[i].out {
						if string(want[i].out[k].Raw()) != string(got[i].out[k].Raw()) {
							t.Errorf("%v %v %s: output %d differs between 1 and %d threads",
								tier, act, want[i].name, k, threads)
						}
					}
				}
			}
		}
	}
}

func TestKernelsAllocateNothing(t *testing.T) {
	d := NewTier(isa.Tiers()[0], 2)
	defer d.Close()
	for _, act := range storages {
		list, _ := calls(70, act)
		for _, c := range list {
			if n := filetest.AllocsPerRun(3, func() { c.run(d) }); n != 0 {
				t.Errorf("%v %s: %v allocations per call, want 0", act, c.name, n)
			}
		}
	}
}

// Every tier agrees with the reference mode in float64 for the same inputs, within a few units of the storage's last
// place. grad_test.go and golden_test.go show that the reference mode is right.
func TestTiersAgreeWithTheReferenceMode(t *testing.T) {
	for _, tier := range isa.Tiers() {
		d := NewTier(tier, 1)
		defer d.Close()
		for _, act := range []tensor.DType{tensor.F32, tensor.BF16} {
			tolerance := map[tensor.DType]float64{tensor.F32: 4e-6, tensor.BF16: 1.0 / 100}[act]
			want, exact := calls(33, tensor.F64)
			got, all := calls(33, act)
			for i := range got {
				for k := range all { // each kernel starts from equal values
					if all[k].DType() != tensor.I32 {
						d.Copy(exact[k], all[k])
					}
				}
				a, b := want[i].run(d), got[i].run(d)
				if math.Abs(a-b) > 1e-9*(1+math.Abs(a)) {
					t.Errorf("%v %v %s: %v, want %v", tier, act, got[i].name, b, a)
				}
				for k := range got[i].out {
					if err := compare(got[i].out[k], want[i].out[k], tolerance); err != nil {
						t.Errorf("%v %v %s: output %d: %v", tier, act, got[i].name, k, err)
					}
				}
			}
		}
	}
}

func compare(got, want *tensor.Tensor, tolerance float64) error {
	if got.DType() == tensor.I32 {
		if !slices.Equal(got.I32(), want.I32()) {
			return fmt.Errorf("%v is %v, want %v", got, got.I32(), want.I32())
		}
		return nil
	}
	for i := range got.Len() {
		g, w := got.Float64(i), want.Float64(i)
		if !(math.Abs(g-w) <= tolerance*(1+math.Abs(w))) {
			return fmt.Errorf("element %d of %v is %v, want %v", i, got, g, w)
		}
	}
	return nil
}
