package fasttext

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The assembly kernels add in the order of the portable ones: the bits are equal, and nothing outside the rows
// changes.
func TestKernelsAddAsThePortableOnes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	numbers := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = rng.Float32()*2 - 1
		}
		return v
	}
	for _, dim := range []int{1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 128, 129, 256, 300} {
		for _, n := range []int{0, 1, 2, 9, 600} {
			const rows = 40
			matrix, x := numbers((rows+1)*dim), numbers(dim)
			ids := make([]int32, n)
			for i := range ids {
				ids[i] = rng.Int32N(rows) // the last row must not change
			}
			got, want := slices.Clone(x), slices.Clone(x)
			addRows(got, matrix[:rows*dim], ids)
			addRowsGeneric(want, matrix, ids)
			same(t, "addRows", dim, n, got, want)
			got, want = slices.Clone(matrix), slices.Clone(matrix)
			addToRows(got, x, ids)
			addToRowsGeneric(want, x, ids)
			same(t, "addToRows", dim, n, got, want)
		}
	}
}

func same(t *testing.T, name string, dim, n int, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s, %d columns, %d rows: number %d is %v, want %v", name, dim, n, i, got[i], want[i])
		}
	}
}
