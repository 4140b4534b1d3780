package tensor

import (
	"math"
	"testing"
)

// OPT-24: the tables of bitsandbytes (create_dynamic_map), by some of their numbers, their sum and their sum of
// squares.
func TestDynamic8IsTheTableOfBitsandbytes(t *testing.T) {
	for _, c := range []struct {
		signed       bool
		numbers      map[int]float64
		sum, squares float64
	}{
		{true, map[int]float64{0: -.99296875, 126: -5.5e-7, 127: 0, 128: 5.5e-7, 129: 3.25e-6, 255: 1}, 1,
			48.595837526},
		{false, map[int]float64{0: 0, 1: 3.25e-7, 2: 7.75e-7, 3: 2.125e-6, 252: .982421875, 253: .989453125,
			254: .996484375, 255: 1}, 75.105263100, 48.597451844},
	} {
		table := Dynamic8(c.signed)
		sum, squares := 0.0, 0.0
		for i, x := range table {
			if i > 0 && x <= table[i-1] {
				t.Errorf("signed %v: number %d is %v after %v", c.signed, i, x, table[i-1])
			}
			sum += float64(x)
			squares += float64(x) * float64(x)
		}
		for i, want := range c.numbers {
			if got := float64(table[i]); math.Abs(got-want) > 1e-7*math.Abs(want) {
				t.Errorf("signed %v: number %d is %v, want %v", c.signed, i, got, want)
			}
		}
		if math.Abs(sum-c.sum) > 2e-6 || math.Abs(squares-c.squares) > 2e-6 {
			t.Errorf("signed %v: sum %.9f and sum of squares %.9f, want %.9f and %.9f",
				c.signed, sum, squares, c.sum, c.squares)
		}
	}
}
