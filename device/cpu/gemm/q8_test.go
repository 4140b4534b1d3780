package gemm

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"anneal/device"
	"anneal/internal/isa"
	"anneal/tensor"
)

// eight returns weights in Q8, and the same numbers in FP32.
func eight(seed uint64, rows, cols int) (q, values *tensor.Tensor) {
	values = random(rand.New(rand.NewPCG(seed, 9)), tensor.F32, rows, cols)
	view := tensor.View(tensor.Q8, make([]byte, rows*cols*2+64*cols), rows, cols)
	q = &view
	tensor.RoundQ8(q, values)
	for i := range rows {
		for j := range cols {
			values.SetFloat64(i*cols+j, float64(tensor.Q8Value(tensor.Q8At(q.Pointer(), cols, i, j), i, j)))
		}
	}
	return q, values
}

// A product by Q8 is that by the numbers that it stands for, in FP32, bit for bit, however many rows there are. The
// other operand is rounded as the options say.
func TestProductsByQ8AreThoseByItsNumbers(t *testing.T) {
	eachTier(t, func(t *testing.T, tier isa.Tier) {
		engines := []*Engine{newEngine(t, tier, 1), newEngine(t, tier, 2)}
		rapid.Check(t, func(t *rapid.T) {
			m := rapid.OneOf(rapid.IntRange(1, fewRows), rapid.IntRange(1, 80)).Draw(t, "m")
			n, k := rapid.IntRange(1, 200).Draw(t, "n"), 32*rapid.IntRange(1, 40).Draw(t, "k/32")
			stored := rapid.SampledFrom(half).Draw(t, "a")
			p := newProblem(device.NT, m, n, k, stored, tensor.F32, rapid.SampledFrom(half).Draw(t, "dst"),
				device.MatMulOptions{
					Operand: tensor.F32, Accumulate: rapid.Bool().Draw(t, "accumulate"),
					Scale: rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "scale"),
				}, rapid.Uint64().Draw(t, "seed"))
			if rapid.Bool().Draw(t, "bias") {
				p.biased(1)
			}
			q, values := eight(rapid.Uint64().Draw(t, "weights"), n, k)
			p.b = values
			e := rapid.SampledFrom(engines).Draw(t, "engine")
			want := p.run(e)
			p.b = q
			if got := p.run(e); !bytes.Equal(got.Raw(), want.Raw()) {
				t.Fatalf("%v: a product by Q8 is another than by its numbers", p)
			}
			if stored == tensor.BF16 {
				p.opt.Operand = tensor.BF16
				if got := p.run(e); !bytes.Equal(got.Raw(), want.Raw()) {
					t.Fatalf("%v: operands in BF16 round weights in Q8", p)
				}
			}
		})
	})
}
