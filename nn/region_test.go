package nn

import (
	"testing"

	"pgregory.net/rapid"

	"anneal/device"
	"anneal/tensor"
)

// Whatever region of a parameter is here, it starts with the numbers that the whole parameter has there.
func TestEveryRegionStartsAsInTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(1, 40).Draw(t, "rows"), rapid.IntRange(1, 700).Draw(t, "cols")
		cut := rapid.IntRange(0, rows).Draw(t, "cut")
		declare := func() *Param {
			p := Declare("w", Matrix, rows, cols)
			p.Std = 0.5
			if cut > 0 && cut < rows {
				p.Parts = []Part{{Rows: cut, Std: 0.1}, {Rows: rows - cut, Std: 2}}
			}
			return p
		}
		start := func(p *Param) *tensor.Tensor {
			p.Value = *tensor.Of(make([]float32, p.Region.Len()), p.Region.Shape...)
			p.Init(device.Host{}, 7, 3)
			return &p.Value
		}
		whole := start(declare())
		p := declare()
		top, left := rapid.IntRange(0, rows-1).Draw(t, "top"), rapid.IntRange(0, cols-1).Draw(t, "left")
		height, width := rapid.IntRange(1, rows-top).Draw(t, "height"), rapid.IntRange(1, cols-left).Draw(t, "width")
		p.Place(Region{Offset: []int{top, left}, Shape: []int{height, width}})
		part := start(p)
		for i := range height {
			for j := range width {
				if got, want := part.Float64(i*width+j), whole.Float64((top+i)*cols+left+j); got != want {
					t.Fatalf("element %d, %d of the region is %v, in the whole %v", i, j, got, want)
				}
			}
		}
	})
}

// A part of a vector, too.
func TestAPartOfAVectorStartsAsInTheWhole(t *testing.T) {
	p := Declare("factors", Scalar, 5)
	p.Start = []float64{1, 2, 3, 4, 5}
	p.Place(Region{Offset: []int{2}, Shape: []int{2}})
	p.Value = *tensor.Of(make([]float64, 2))
	p.Init(device.Host{}, 1, 0)
	if got := p.Value.F64(); got[0] != 3 || got[1] != 4 {
		t.Errorf("elements 2 and 3 start as %v", got)
	}
}
