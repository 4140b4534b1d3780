package gemm

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"anneal/device/cpu/isa"
	"anneal/tensor"
)

// Every element of a block product is within the bound of recursive summation, k·eps·Σ|a||b|, of the float64 product, and
// nothing outside the rounded-up block is written.
func TestMicroMatchesFloat64(t *testing.T) {
	for _, tier := range isa.Tiers() {
		t.Run(tier.String(), func(t *testing.T) {
			u := MicroFor(tier)
			rapid.Check(t, func(t *rapid.T) {
				m, n, k := rapid.IntRange(1, 40).Draw(t, "m"), rapid.IntRange(1, 70).Draw(t, "n"), rapid.IntRange(0, 40).Draw(t, "k")
				trans, add := rapid.Bool().Draw(t, "transposed"), rapid.Bool().Draw(t, "add")
				extra := rapid.IntRange(0, 3).Draw(t, "extra stride")
				r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
				mr, nr := roundUp(m, RowStep), roundUp(n, ColStep)
				rowsA, colsA := mr, k
				if trans {
					rowsA, colsA = k, mr
				}
				lda, ldb, ldc := colsA+extra, nr+extra, nr+extra
				a, b, c := floats(r, rowsA*lda), floats(r, k*ldb), floats(r, mr*ldc)
				was := append([]float32(nil), c...)
				if trans {
					u.MulT(c, ldc, a, lda, b, ldb, m, n, k, add)
				} else {
					u.Mul(c, ldc, a, lda, b, ldb, m, n, k, add)
				}
				for i := range mr {
					for j := range ldc {
						if j >= nr {
							if c[i*ldc+j] != was[i*ldc+j] {
								t.Fatalf("wrote outside the block at %d, %d", i, j)
							}
							continue
						}
						var want, size float64
						if add {
							want = float64(was[i*ldc+j])
							size = math.Abs(want)
						}
						for p := range k {
							x := a[0]
							if trans {
								x = a[p*lda+i]
							} else {
								x = a[i*lda+p]
							}
							v := float64(x) * float64(b[p*ldb+j])
							want += v
							size += math.Abs(v)
						}
						if got := float64(c[i*ldc+j]); math.Abs(got-want) > float64(k+1)*0x1p-24*size {
							t.Fatalf("%d×%d×%d: c[%d,%d] = %v, want %v", m, n, k, i, j, got, want)
						}
					}
				}
			})
		})
	}
}

func TestMicroCopiesAreExact(t *testing.T) {
	for _, tier := range isa.Tiers() {
		t.Run(tier.String(), func(t *testing.T) {
			u := MicroFor(tier)
			rapid.Check(t, func(t *rapid.T) {
				rows, cols := rapid.IntRange(1, 70).Draw(t, "rows"), rapid.IntRange(1, 70).Draw(t, "cols")
				ls, ld := cols+rapid.IntRange(0, 3).Draw(t, "ls"), max(rows, cols)+rapid.IntRange(0, 3).Draw(t, "ld")
				r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
				f := floats(r, rows*ls)
				h := make([]tensor.BFloat16, len(f))
				for i, v := range f {
					h[i] = tensor.BF16FromFloat32(v)
				}
				size := max(rows, cols) * ld
				straight, widened, turned := floats(r, size), floats(r, size), floats(r, size)
				was := [][]float32{clone(straight), clone(widened), clone(turned)}
				u.Widen(straight, ld, h, ls, rows, cols)
				u.WidenT(widened, ld, h, ls, rows, cols)
				u.Transpose(turned, ld, f, ls, rows, cols)
				for i := range size {
					row, col := i/ld, i%ld
					want := [3]float32{was[0][i], was[1][i], was[2][i]}
					if row < rows && col < cols {
						want[0] = h[row*ls+col].Float32()
					}
					if row < cols && col < rows {
						want[1], want[2] = h[col*ls+row].Float32(), f[col*ls+row]
					}
					if got := [3]float32{straight[i], widened[i], turned[i]}; got != want {
						t.Fatalf("%d×%d, strides %d and %d: element %d, %d is %v, want %v", rows, cols, ls, ld, row, col, got, want)
					}
				}
			})
		})
	}
}

func TestMicroRefusesShortSlices(t *testing.T) {
	u := MicroFor(isa.Generic)
	f := func(n int) []float32 { return make([]float32, n) }
	for name, call := range map[string]func(){
		"c":     func() { u.Mul(f(4*32-1), 32, f(4), 1, f(32), 32, 1, 1, 1, false) },
		"a":     func() { u.Mul(f(4*32), 32, f(3), 1, f(32), 32, 1, 1, 1, false) },
		"b":     func() { u.MulT(f(4*32), 32, f(4), 4, f(31), 32, 1, 1, 1, false) },
		"widen": func() { u.Widen(f(9), 3, make([]tensor.BFloat16, 8), 3, 3, 3) },
		"turn":  func() { u.Transpose(f(8), 3, f(9), 3, 3, 3) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

func clone(s []float32) []float32 { return append([]float32(nil), s...) }

func floats(r *rand.Rand, n int) []float32 {
	s := make([]float32, n)
	for i := range s {
		s[i] = float32(r.NormFloat64())
	}
	return s
}
