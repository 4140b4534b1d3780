package dash

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// However many steps there are, every bucket has the smallest, the largest and the mean of its steps, and no step is in
// two of them or in none.
func TestBucketsHoldEveryStepOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.IntRange(1, 10_000).Draw(t, "first")
		gaps := rapid.SliceOfN(rapid.IntRange(1, 40), 1, 3000).Draw(t, "gaps")
		table := newTable()
		values, step := map[int]float64{}, first
		for i, gap := range gaps {
			x := math.Sin(float64(i)) * float64(i)
			if i%7 == 3 {
				x = math.NaN()
			} else {
				values[step] = x
			}
			table.add(place{step: step}, []field{{[]byte("step"), float64(step)}, {[]byte("x"), x}})
			step += gap
		}
		if len(table.x) > buckets {
			t.Fatalf("%d buckets", len(table.x))
		}
		if _, ok := table.index["x"]; !ok {
			t.Fatal("no column")
		}
		want := make([]cell, len(table.x))
		for step, x := range values {
			want[(step-first)/table.width].add(x)
		}
		cells := table.columns[table.index["x"]].cells
		for i, w := range want {
			var c cell
			if i < len(cells) {
				c = cells[i]
			}
			if c.n != w.n || c.min != w.min || c.max != w.max || math.Abs(c.sum-w.sum) > 1e-6*(1+math.Abs(w.sum)) {
				t.Fatalf("bucket %d of %d steps: %+v, want %+v", i, table.width, c, w)
			}
		}
	})
}

// Steps that are missing leave a bucket empty, which lies where the one before it ends, also in a pair that is merged.
func TestBucketsOfMissingStepsLieAtThePreviousEnd(t *testing.T) {
	table := newTable()
	for step := 1; step <= buckets+2; step++ {
		if step != 2 && step != 3 {
			table.add(place{step: step, tokens: float64(step)}, []field{{[]byte("x"), 1}})
		}
	}
	if table.width < 2 {
		t.Fatal("no buckets were merged")
	}
	for i, at := range table.x {
		if at.tokens != float64(at.step) || i > 0 && at.step <= table.x[i-1].step {
			t.Fatalf("bucket %d of %d steps lies at %+v", i, table.width, at)
		}
	}
}

// A file with ever new names of numbers takes no more memory than there are columns.
func TestColumnsAreBounded(t *testing.T) {
	table := newTable()
	for i := range 3 * maxColumns {
		table.add(place{step: i + 1}, []field{{[]byte{'a' + byte(i%26), byte(i), byte(i >> 8)}, 1}})
	}
	if len(table.columns) > maxColumns || !table.dropped {
		t.Errorf("%d columns, dropped %v", len(table.columns), table.dropped)
	}
}
