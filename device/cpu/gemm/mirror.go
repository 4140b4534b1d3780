package gemm

import "unsafe"

// A mirror copies the parts of a symmetric product that were not computed from the other side of the diagonal. The
// bits are the same as if they were computed: the same numbers multiplied and added in the same order.
type mirror struct {
	cut *cut
	dst sink
}

// mirrorSide is the side of the squares in which elements are copied, so that the lines read stay in the first-level
// cache.
const mirrorSide = 32

// Do fills one task's part.
func (m *mirror) Do(_, task int) {
	t := m.cut.span(task/m.cut.down, task%m.cut.down)
	if !m.cut.mirrored(t) {
		return
	}
	for i := t.i; i < t.i+t.rows; i += mirrorSide {
		rows := min(mirrorSide, t.i+t.rows-i)
		for j := t.j; j < t.j+t.cols; j += mirrorSide {
			cols := min(mirrorSide, t.j+t.cols-j)
			switch m.dst.dtype.Size() {
			case 2:
				reflect[uint16](m.dst, i, j, rows, cols)
			case 4:
				reflect[uint32](m.dst, i, j, rows, cols)
			default:
				reflect[uint64](m.dst, i, j, rows, cols)
			}
		}
	}
}

// reflect sets the elements of a rectangle to their mirror images.
func reflect[W uint16 | uint32 | uint64](s sink, i, j, rows, cols int) {
	all := unsafe.Slice((*W)(s.p), s.ld*s.ld)
	for c := range cols {
		from := all[(j+c)*s.ld+i:][:rows]
		to := all[i*s.ld+j+c:]
		for r, v := range from {
			to[r*s.ld] = v
		}
	}
}
