package nn

// A Region is the part of a tensor that a rank has: the rows of some spans, one after the other, and in each row the
// columns of one span. A fused weight that is cut has one span of rows for each of its parts.
type Region struct {
	Rows []Span // ascending
	Cols Span   // of a matrix; zero for a vector, which has only rows
}

// A Span is the indices From … To−1.
type Span struct{ From, To int }

// Len returns the number of indices.
func (s Span) Len() int { return s.To - s.From }

// Whole returns the region that covers a whole tensor of one or two dimensions.
func Whole(shape []int) Region {
	r := Region{Rows: []Span{{0, shape[0]}}}
	if len(shape) > 1 {
		r.Cols = Span{0, shape[1]}
	}
	return r
}

// Height returns the number of rows.
func (r Region) Height() (n int) {
	for _, s := range r.Rows {
		n += s.Len()
	}
	return n
}

// Shape returns the shape of the region.
func (r Region) Shape() []int {
	if r.Cols == (Span{}) {
		return []int{r.Height()}
	}
	return []int{r.Height(), r.Cols.Len()}
}

// Len returns the number of elements.
func (r Region) Len() int { return product(r.Shape()) }

// Runs calls f for each run of r's elements that is contiguous in the whole tensor, whose shape is given. A run has n
// elements; its first element has the index local in the region and global in the whole tensor.
func (r Region) Runs(whole []int, f func(local, global, n int)) {
	width, cols := 1, Span{0, 1}
	if len(whole) > 1 {
		width, cols = whole[1], r.Cols
	}
	local := 0
	for _, s := range r.Rows {
		if cols.Len() == width {
			f(local, s.From*width, s.Len()*width)
			local += s.Len() * width
			continue
		}
		for row := s.From; row < s.To; row++ {
			f(local, row*width+cols.From, cols.Len())
			local += cols.Len()
		}
	}
}
