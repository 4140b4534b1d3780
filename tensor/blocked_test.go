package tensor

import (
	"math"
	"testing"
)

// Every weight is found again in its place, as it was, rounded to BF16, or within half a step of its block; rows beyond
// the last are zeros.
func TestBlocksHoldAMatrix(t *testing.T) {
	const rows, cols = 45, 96
	values := make([]float32, rows*cols)
	for i := range values {
		values[i] = float32(i%cols-40)*float32(1+i/cols) + 0x1p-7
	}
	for d, bytes := range map[DType]int{BlockedF32: 4096, BlockedBF16: 2048, BlockedPairs: 2048, Q8: 1088} {
		dirty := make([]byte, 2*3*bytes)
		for i := range dirty {
			dirty[i] = 7
		}
		b := View(d, dirty, rows, cols)
		if b.Bytes() != 2*3*bytes {
			t.Fatalf("%v: %d bytes, want %d", d, b.Bytes(), 2*3*bytes)
		}
		ToBlocks(&b, Of(values, rows, cols))
		at := func(i, j int) float32 { return d.InBlock(d.Block(b.data, cols, i, j), i, j) }
		for i := range rows {
			for j := range cols {
				got, want, limit := at(i, j), values[i*cols+j], 0.0
				switch d {
				case BlockedBF16, BlockedPairs:
					want = BF16FromFloat32(want).Float32()
				case Q8:
					for _, x := range values[i*cols+j/Side*Side:][:Side] {
						limit = max(limit, math.Abs(float64(x))/127*(0.5+0x1p-4))
					}
				}
				if math.Abs(float64(got-want)) > limit {
					t.Fatalf("%v, row %d, column %d: %v, want %v within %v", d, i, j, got, want, limit)
				}
			}
		}
		for i := rows; i < 2*Side; i++ {
			if v := at(i, 5); v != 0 {
				t.Errorf("%v: row %d, which is none, has %v", d, i, v)
			}
		}
	}
}
