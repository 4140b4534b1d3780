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

// blocked returns weights of a blocked format, and the same numbers in FP32.
func blocked(d tensor.DType, seed uint64, rows, cols int) (b, values *tensor.Tensor) {
	values = random(rand.New(rand.NewPCG(seed, 9)), tensor.F32, rows, cols)
	view := tensor.View(d, make([]byte, (rows+tensor.Side)*cols*5), rows, cols)
	b = &view
	tensor.ToBlocks(b, values)
	for i := range rows {
		for j := range cols {
			values.SetFloat64(i*cols+j, float64(d.InBlock(d.Block(b.Pointer(), cols, i, j), i, j)))
		}
	}
	return b, values
}

// A product with a blocked format equals the product with the same numbers in FP32, bit for bit, for any number of
// rows. The other operand is rounded as the options say.
func TestProductsByBlocksAreThoseByTheirNumbers(t *testing.T) {
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
			d := rapid.SampledFrom([]tensor.DType{tensor.Q8, tensor.BlockedBF16, tensor.BlockedF32,
				tensor.BlockedPairs}).Draw(t, "format")
			b, values := blocked(d, rapid.Uint64().Draw(t, "weights"), n, k)
			p.b = values
			e := rapid.SampledFrom(engines).Draw(t, "engine")
			want := p.run(e)
			p.b = b
			if got := p.run(e); !bytes.Equal(got.Raw(), want.Raw()) {
				t.Fatalf("%v: a product by blocks is another than by their numbers", p)
			}
			if stored == tensor.BF16 {
				p.opt.Operand = tensor.BF16
				if d == Blocked(tier, tensor.BF16) {
					p.b = values
					want = p.run(e)
					p.b = b
				}
				if got := p.run(e); !bytes.Equal(got.Raw(), want.Raw()) {
					t.Fatalf("%v: operands in BF16 round weights in blocks", p)
				}
			}
		})
	})
}
