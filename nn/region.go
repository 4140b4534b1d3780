package nn

// A Region is a box of a tensor: Shape elements from Offset on, by dimension.
type Region struct{ Offset, Shape []int }

// Len returns the number of elements.
func (r Region) Len() int { return product(r.Shape) }

// runs calls f for the elements of r as runs that are contiguous in the whole tensor: n elements, of which the first
// is number local of the region and number global of the whole, whose shape is given. A tensor has one or two
// dimensions.
func (r Region) runs(whole []int, f func(local, global, n int)) {
	if len(whole) == 1 {
		f(0, r.Offset[0], r.Shape[0])
		return
	}
	rows, cols, width := r.Shape[0], r.Shape[1], whole[1]
	if cols == width {
		f(0, r.Offset[0]*width, rows*cols)
		return
	}
	for i := range rows {
		f(i*cols, (r.Offset[0]+i)*width+r.Offset[1], cols)
	}
}
