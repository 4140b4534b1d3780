package autograd

import (
	"testing"

	"anneal/device"
	"anneal/device/cpu"
	"anneal/internal/isa"
	"anneal/tensor"
)

// Lessons and their gradients do not depend on how the head's rows are cut: of more rows than have room for logits at
// a time, each has what it has beside others.
func TestLessonsDoNotDependOnTheChunks(t *testing.T) {
	const rows, vocab, dim, k = 600, 5000, 8, 3 // 512 rows of logits have room
	dev := cpu.NewTier(isa.Generic, 2)
	t.Cleanup(dev.Close)
	arena := func() *tensor.Arena {
		a, err := tensor.NewArena("test", 128<<20)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		return a
	}
	all, keep, temp := arena(), arena(), arena()
	random := func(stream uint32, shape ...int) tensor.Tensor {
		x := all.New(tensor.F64, shape...)
		rng := tensor.NewRNG(1, tensor.PurposeData, stream)
		for i := range x.Len() {
			x.SetFloat64(i, 4*rng.Float64(uint64(i))-2)
		}
		return x
	}
	types := Types{Stream: tensor.F64, Activation: tensor.F64, Operand: tensor.F64, Stat: tensor.F64}
	taught, learns := &Param{Value: random(1, vocab, dim)}, &Param{Value: random(2, vocab, dim)}
	learns.Grad = all.New(tensor.F64, vocab, dim)
	hidden, targets := random(3, rows, dim), all.New(tensor.I32, rows)
	for i := range targets.I32() {
		targets.I32()[i] = int32(i * 7 % vocab)
	}
	pass := func(from, to int) (ids []int32, p, rest, kl, grad []float64) {
		n := to - from
		tape := NewTape(dev, types, keep, temp)
		x, y := hidden.Slice(from, to), targets.Slice(from, to)
		l := device.Teacher{Temperature: 2, Weight: 0.5}
		l1, l2 := all.New(tensor.I32, n, k), all.New(tensor.F64, n, k)
		l3, l4, losses := all.New(tensor.F64, n), all.New(tensor.F64, n), all.New(tensor.F64, n)
		l.IDs, l.P, l.Rest, l.KL = &l1, &l2, &l3, &l4
		tape.Reset(false)
		tape.Likeliest(tape.Begin(&x), taught, l.IDs, l.P, l.Rest, 0, l.Temperature)
		tape.Reset(true)
		learns.ResetGrad()
		h := tape.Begin(&x)
		tape.HeadLoss(h, learns, &y, &losses, device.LossOptions{Teacher: &l})
		return l1.I32(), l2.F64(), l3.F64(), l4.F64(), append([]float64(nil), h.grad.F64()...)
	}
	ids, p, rest, kl, grad := pass(0, rows)
	for _, from := range []int{0, 300} {
		ids2, p2, rest2, kl2, grad2 := pass(from, from+300)
		for i := range 300 {
			r := from + i
			if rest[r] != rest2[i] || kl[r] != kl2[i] || ids[r*k] != ids2[i*k] || p[r*k+2] != p2[i*k+2] ||
				grad[r*dim+1] != grad2[i*dim+1] {
				t.Fatalf("row %d: %v %v %v %v, beside others %v %v %v %v", r, ids2[i*k], p2[i*k+2], rest2[i], kl2[i],
					ids[r*k], p[r*k+2], rest[r], kl[r])
			}
		}
	}
}
