package gemm

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"anneal/device"
	"anneal/internal/isa"
	"anneal/tensor"
)

// needTiles skips a test of the amx tier if the machine does not support it.
func needTiles(t *testing.T) {
	if !slices.Contains(isa.Tiers(), isa.AMX) {
		t.Skip("no tiles here")
	}
}

// On tiles a sum has the order that the comment on strip documents, to the last bit: along K in runs of 32, whose even
// and odd products are added separately.
func TestSumsOnTilesAreMadeInTheDocumentedOrder(t *testing.T) {
	needTiles(t)
	e := newEngine(t, isa.AMX, 1)
	for _, form := range forms {
		for _, k := range []int{1, 31, 70, 1100} {
			p := newProblem(form, 37, 41, k, tensor.F32, tensor.BF16, tensor.F32,
				device.MatMulOptions{Operand: tensor.BF16}, 4)
			got := p.run(e).F32()
			a, b := p.values(p.a, form == device.TN), p.values(p.b, form != device.NT)
			for i := range p.m {
				for j := range p.n {
					var want float32
					for q := 0; q < k; q += 32 {
						var halves [2]float32
						for r := q; r < min(q+32, k); r++ {
							halves[r%2] = float32(math.FMA(a[i*k+r], b[j*k+r], float64(halves[r%2])))
						}
						want += halves[0] + halves[1]
					}
					if v := got[i*p.n+j]; v != want {
						t.Fatalf("%v: dst[%d,%d] = %v, in order %v", p, i, j, v, want)
					}
				}
			}
		}
	}
}

// Products so wide and deep that b is packed in rounds have the same bits as others, for any number of workers.
func TestRoundsDoNotChangeBits(t *testing.T) {
	needTiles(t)
	one, many := newEngine(t, isa.AMX, 1), newEngine(t, isa.AMX, 3)
	for _, form := range forms {
		for _, dst := range storage {
			p := newProblem(form, 100, 200, 8200, tensor.BF16, tensor.F32, dst,
				device.MatMulOptions{Operand: tensor.BF16, Accumulate: dst == tensor.F32}, 6)
			all := p.run(one)
			if one.bf16.cut.keep {
				t.Fatalf("%v takes one round: %+v", p, one.bf16.cut)
			}
			if !bytes.Equal(all.Raw(), p.run(many).Raw()) {
				t.Errorf("%v: other bits with 3 workers than with 1", p)
			}
			p.dst = empty(dst, p.m, p.n)
			p.opt.Accumulate = false
			all = p.run(one)
			p.m, p.n = 20, 40 // a corner, computed alone
			corner := &problem{
				form, p.m, p.n, p.k, sub(p.a, form == device.TN, 20, p.k), sub(p.b, form != device.NT, 40, p.k),
				empty(dst, 20, 40), p.opt,
			}
			if want := sub(all, false, 20, 40); !bytes.Equal(corner.run(one).Raw(), want.Raw()) {
				t.Errorf("%v: other bits than as a part of a larger product", corner)
			}
		}
	}
}

// sub returns a copy of the first rows and cols of t, or of cols and rows if it is turned.
func sub(t *tensor.Tensor, turned bool, rows, cols int) *tensor.Tensor {
	if turned {
		rows, cols = cols, rows
	}
	out := empty(t.DType(), rows, cols)
	size := t.DType().Size()
	for i := range rows {
		copy(out.Raw()[i*cols*size:][:cols*size], t.Raw()[i*t.Cols()*size:])
	}
	return out
}
