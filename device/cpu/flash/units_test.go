package flash

import (
	"math"
	"testing"

	"anneal/device"
	"anneal/internal/isa"
	"anneal/tensor"

	"pgregory.net/rapid"
)

// onMatrixUnits returns the primitives of the tier that has them, or skips the test.
func onMatrixUnits(t *testing.T) kernels[float32] {
	for _, tier := range isa.Tiers() {
		if k := kernelsBF16(tier); k.attend != nil {
			return k
		}
	}
	t.Skip("this CPU has no matrix units")
	panic("unreachable")
}

// oneKey returns scratch for a panel of queries that see only the first key of a tile, and the piece. The score of
// query c is scores[c], a number of up to 16 bits.
func oneKey(scores []float32) (forwardTile[float32], piece) {
	x := make([]float32, 32*64)
	t := forwardTile[float32]{
		k: x[:64*16], vt: make([]float32, 16*32), qt: make([]float32, 16*32), o: make([]float32, 16*32),
		m: make([]float32, 32), l: make([]float32, 32), s: make([]float32, 64*32), ld: 32, led: 32,
	}
	t.k[0], t.vt[0] = word(1, 1), word(1, 0)
	for c, s := range scores {
		high := tensor.BF16FromFloat32(s).Float32()
		t.qt[c] = word(high, s-high)
	}
	seen := make([]uint32, 32)
	seen[0] = math.MaxUint32
	return t, piece{rows: 32, seen: &seen[0]}
}

// Powers of two are within the bound that gen/tiles.go states, for numbers of 16 bits between −126 and 0, and right
// outside of that range.
func TestPowersOnMatrixUnitsAreWithinTheirBound(t *testing.T) {
	k := onMatrixUnits(t)
	power := func(x []float32) []float32 {
		tile, p := oneKey(x)
		k.attend(tile, []piece{p}, 0, 1, 1, 1)
		for c, m := range tile.m {
			if m != 0 {
				t.Fatalf("the maximum of column %d, %v, became %v", c, x[c], m)
			}
			if got, want := tile.o[c], tile.l[c]; !(math.Abs(float64(got-want)) <= float64(want)/256) {
				t.Fatalf("2^%v is summed as %v, and rounded to %v", x[c], want, got)
			}
		}
		return tile.l
	}
	var worst float64
	x := make([]float32, 32)
	const step = 0x100 // of numbers of 16 bits
	for bits := math.Float32bits(-0x1p-20); bits < math.Float32bits(-126); bits += 32 * step {
		for i := range x {
			x[i] = math.Float32frombits(min(bits+step*uint32(i), math.Float32bits(-126)))
		}
		for i, got := range power(x) {
			want := math.Exp2(float64(x[i]))
			worst = max(worst, math.Abs(float64(got)-want)/want)
		}
	}
	if worst > 1.2e-7 {
		t.Errorf("2^x is off by %.3g relative, stated 1.2e-7", worst)
	}
	got := power([]float32{0, -127, -1e30, -3e38})
	if got[0] != 1 || got[1] != 0 || got[2] != 0 || got[3] != 0 {
		t.Errorf("2^x at 0, -127, -1e30 and -3e38 is %v", got[:4])
	}
}

// The bits that see sets agree with the scores that hide writes.
func TestSeeIsHide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const length, width = 160, 32
		strip := func(name string, most int) device.Strip {
			s := device.Strip{
				First: rapid.IntRange(0, 60).Draw(t, name),
				Step:  rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, name+" step"),
			}
			s.Count = rapid.IntRange(1, min(most, (length-1-s.First)/s.Step+1)).Draw(t, name+" count")
			return s
		}
		var tile keyTile
		for range rapid.IntRange(1, 3).Draw(t, "runs") {
			k := run{device.KeyRange{Strip: strip("keys", 20), Near: rapid.IntRange(0, 9).Draw(t, "near"),
				Far: math.MaxInt}, tile.keys}
			if rapid.Bool().Draw(t, "window") {
				k.Far = rapid.IntRange(k.Near, 90).Draw(t, "far")
			}
			tile.runs, tile.keys = append(tile.runs, k), tile.keys+k.Count
		}
		var start []int32
		if rapid.Bool().Draw(t, "documents") {
			start = starts(t, 1, length)
		}
		p := newPanel(&shape{length: length, start: start}, 0, strip("queries", width))
		rows := roundUp(tile.keys, 32)
		scores, seen := make([]float32, rows*width), make([]uint32, rows)
		hide(scores, width, rows, 0, &tile, &p, width)
		see(seen, &tile, &p)
		for i, s := range scores {
			if shown := s == 0; i%width < p.Count && shown != (seen[i/width]>>(i%width)&1 == 1) {
				t.Fatalf("query %d and row %d: seen %v, hidden %v",
					i%width, i/width, seen[i/width]>>(i%width)&1, !shown)
			}
		}
	})
}
