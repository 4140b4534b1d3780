package device

import (
	"testing"

	"anneal/tensor"
)

// ring returns the position that each of so many rows was last given.
func ring(rows, written int) []int {
	at := make([]int, rows)
	for p := range written {
		at[p%rows] = p
	}
	return at
}

// A cache holds a position just if every key before it that its query sees still stands in its row: all small cases.
func TestCacheHoldsWhatItsRowsHave(t *testing.T) {
	for rows := 1; rows <= 8; rows++ {
		for reach := 2; reach <= 8; reach++ { // 1 needs no row at all
			c := Cache{KV: tensor.View(tensor.F32, make([]byte, 4*rows), rows, 1), Reach: reach}
			for written := range 24 {
				at := ring(rows, written)
				for p := 1; p <= written; p++ {
					want := true
					for key := max(0, p-reach+1); key < p; key++ {
						want = want && at[key%rows] == key
					}
					if got := c.Holds(written, p); got != want {
						t.Fatalf("%d rows, reach %d, %d tokens written: holds position %d: %v, want %v (rows have %v)",
							rows, reach, written, p, got, want, at)
					}
				}
			}
		}
	}
}

// After a block of tokens has been added, even the first of them finds all keys that it sees.
func TestCacheRowsHoldABlock(t *testing.T) {
	for _, length := range []int{1, 63, 64, 65, 150, 200} {
		for reach := 1; reach <= 210; reach += 7 {
			rows := CacheRows(length, reach)
			for p := range length {
				at := ring(rows, min(p+cachedBlock, length))
				for key := max(0, p-reach+1); key <= p; key++ {
					if at[key%rows] != key {
						t.Fatalf("length %d, reach %d: %d rows have lost key %d of position %d",
							length, reach, rows, key, p)
					}
				}
			}
		}
	}
}
