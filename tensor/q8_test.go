package tensor

import (
	"math"
	"testing"
)

// Every weight is found again in its place, within half a step of its block; rows beyond the last are zeros.
func TestQ8HoldsAMatrix(t *testing.T) {
	const rows, cols = 45, 96
	values := make([]float32, rows*cols)
	for i := range values {
		values[i] = float32(i%cols-40) * float32(1+i/cols)
	}
	q := View(Q8, make([]byte, 2*3*q8Size), rows, cols)
	if q.Bytes() != 2*3*q8Size {
		t.Fatalf("%d bytes, want %d", q.Bytes(), 2*3*q8Size)
	}
	RoundQ8(&q, Of(values, rows, cols))
	for i := range rows {
		for j := range cols {
			limit := 0.0
			for _, x := range values[i*cols+j/Q8Block*Q8Block:][:Q8Block] {
				limit = max(limit, math.Abs(float64(x))/127*(0.5+0x1p-4))
			}
			got, want := Q8Value(Q8At(q.data, cols, i, j), i, j), values[i*cols+j]
			if math.Abs(float64(got-want)) > limit {
				t.Fatalf("row %d, column %d: %v, want %v within %v", i, j, got, want, limit)
			}
		}
	}
	for i := rows; i < 2*Q8Block; i++ {
		if v := Q8Value(Q8At(q.data, cols, i, 5), i, 5); v != 0 {
			t.Errorf("row %d, which is none, has %v", i, v)
		}
	}
}
