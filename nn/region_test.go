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
			p.Value = *tensor.Of(make([]float32, p.Region.Len()), p.Region.Shape()...)
			p.Init(device.Host{}, 7, 3)
			return &p.Value
		}
		whole := start(declare())
		p := declare()
		span := func(n int, label string) Span {
			from := rapid.IntRange(0, n-1).Draw(t, label)
			return Span{from, rapid.IntRange(from+1, n).Draw(t, label+" end")}
		}
		r := Region{Rows: []Span{span(rows, "rows")}, Cols: span(cols, "columns")}
		if last := r.Rows[0].To; last < rows && rapid.Bool().Draw(t, "two spans") {
			second := span(rows-last, "second")
			r.Rows = append(r.Rows, Span{last + second.From, last + second.To})
		}
		p.Place(r)
		part := *start(p)
		at := 0
		for _, s := range r.Rows {
			for i := s.From; i < s.To; i++ {
				for j := r.Cols.From; j < r.Cols.To; j++ {
					if got, want := part.Float64(at), whole.Float64(i*cols+j); got != want {
						t.Fatalf("element %d of the region is %v, that of row %d, column %d is %v", at, got, i, j, want)
					}
					at++
				}
			}
		}
		piece := span(at, "piece")
		p.First, p.Value = piece.From, *tensor.Of(make([]float32, piece.Len()))
		p.Init(device.Host{}, 7, 3)
		for i := range piece.Len() {
			if got, want := p.Value.Float64(i), part.Float64(piece.From+i); got != want {
				t.Fatalf("element %d of a piece is %v, of the region %v", i, got, want)
			}
		}
	})
}

// A part of a vector, too.
func TestAPartOfAVectorStartsAsInTheWhole(t *testing.T) {
	p := Declare("factors", Scalar, 5)
	p.Start = []float64{1, 2, 3, 4, 5}
	p.Place(Region{Rows: []Span{{2, 4}}})
	p.Value = *tensor.Of(make([]float64, 2))
	p.Init(device.Host{}, 1, 0)
	if got := p.Value.F64(); got[0] != 3 || got[1] != 4 {
		t.Errorf("elements 2 and 3 start as %v", got)
	}
}
