package cpu

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"testing"

	"anneal/internal/isa"
	"anneal/tensor"
)

// On every tier, blocks are rounded like torchao's MXFP8, and like torch's float8 with DeepSeek's blocks.
func TestQuantizedBlocksAreThoseOfTorch(t *testing.T) {
	text, err := os.ReadFile("testdata/quantize_blocks.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name                   string
		Rows, Cols, High, Wide int
		X, Codes, Scales       []byte
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) == 0 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		narrow := tensor.View(tensor.BF16, c.X, c.Rows, c.Cols)
		wide := tensor.Of(make([]float32, c.Rows*c.Cols), c.Rows, c.Cols)
		for i := range wide.Len() {
			wide.SetFloat64(i, narrow.Float64(i))
		}
		across := (c.Cols + c.Wide - 1) / c.Wide
		for _, tier := range isa.Tiers() {
			for _, src := range []*tensor.Tensor{&narrow, wide} {
				dev := NewTier(tier, 2)
				got := tensor.Of(make([]tensor.BFloat16, c.Rows*c.Cols), c.Rows, c.Cols)
				dev.QuantizeBlocks(got, src, c.High, c.Wide)
				dev.Close()
				for i := range got.Len() {
					row, col := i/c.Cols, i%c.Cols
					exponent := int(c.Scales[row/c.High*across+col/c.Wide]) - 127
					want := math.Ldexp(float64(tensor.E4M3(c.Codes[i]).Float32()), exponent)
					if got.Float64(i) != want {
						t.Fatalf("%s, %v, %v: element %d, %d of %v is %v, want %v",
							c.Name, tier, src.DType(), row, col, narrow.Float64(i), got.Float64(i), want)
					}
				}
			}
		}
	}
}

// A block with a number that is not finite is NaN, and its neighbours are not.
func TestBlocksThatAreNotFiniteBecomeNaN(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, block := range [][2]int{{1, 32}, {32, 1}, {128, 128}} {
			x := tensor.Of(make([]float32, 130*130), 130, 130)
			for i := range x.Len() {
				x.F32()[i] = 1
			}
			x.SetFloat64(40*130+50, bad)
			dev, got := NewTier(isa.Generic, 2), tensor.Of(make([]tensor.BFloat16, 130*130), 130, 130)
			dev.QuantizeBlocks(got, x, block[0], block[1])
			dev.Close()
			for i := range got.Len() {
				inside := i/130/block[0] == 40/block[0] && i%130/block[1] == 50/block[1]
				if v := got.Float64(i); inside != math.IsNaN(v) || !inside && v != 1 {
					t.Fatalf("%v, blocks %v: element %d, %d is %v", bad, block, i/130, i%130, v)
				}
			}
		}
	}
}

// Blocks may be wider than the stretch of a row that is converted at a time: of numbers that repeat, blocks of two
// repetitions are rounded as those of one.
func TestWideBlocksAreQuantized(t *testing.T) {
	const rows, wide = 3, 650
	x := tensor.Of(make([]float32, rows*4*wide), rows, 4*wide)
	for i := range x.Len() {
		x.F32()[i] = float32(math.Sin(float64(i % wide * (1 + i/(4*wide)))))
	}
	dev := NewTier(isa.Generic, 2)
	defer dev.Close()
	got := tensor.Of(make([]tensor.BFloat16, x.Len()), rows, 4*wide)
	want := tensor.Of(make([]tensor.BFloat16, x.Len()), rows, 4*wide)
	dev.QuantizeBlocks(got, x, 1, 2*wide)
	dev.QuantizeBlocks(want, x, 1, wide)
	if !bytes.Equal(got.Raw(), want.Raw()) {
		t.Error("blocks of 1300 columns differ from those of 650 with the same numbers")
	}
}
