package gemm

import (
	"unsafe"

	"anneal/tensor"
)

// A source is an operand, or a block of one, in memory: row-major with a row stride of ld elements.
type source struct {
	p     unsafe.Pointer
	ld    int
	dtype tensor.DType // F32, BF16, F16, F64 or a blocked format
	round tensor.DType // format to which F32 elements are rounded: BF16, F16, TF32, or F32 for none
	i, j  int          // row and column of a blocked format at which the source begins; p points to the whole matrix
}

// at returns the block of s that begins at row i and column j.
func (s source) at(i, j int) source {
	if s.dtype.Blocked() {
		s.i, s.j = s.i+i, s.j+j
		return s
	}
	s.p = unsafe.Add(s.p, (i*s.ld+j)*s.dtype.Size())
	return s
}

// block returns the block in which the first row and column k of s lie.
func (s source) block(k int) unsafe.Pointer { return s.dtype.Block(s.p, s.ld, s.i, s.j+k) }

// A packer copies blocks of operands into the layouts that kernels read. A word is the unit that a kernel multiplies:
// an element, or in the avx512bf16 tier a pair of BF16 elements adjacent along k, the lower one first. With pairs, an
// odd k is padded with a zero. If the tile's run is 2, layouts in which k runs down hold two words along k of a column
// next to each other, in the place of rows p&^1 and p|1, and k is padded to whole runs.
type packer[E tensor.Number] struct {
	// copyRows copies rows×cols elements with k along the row: word (i, p) goes to dst[i·ldd+p].
	copyRows func(dst *E, ldd int, src source, rows, cols int)
	// transpose copies rows×cols elements with k along the row, so that k runs down: word (i, p) goes to
	// dst[p·ldd+i].
	transpose func(dst *E, ldd int, src source, rows, cols int)
	// panels copies rows×cols elements with k down the column into panels of width columns: word
	// (p, j) goes to dst[j/width·stride + p·width + j%width].
	panels func(dst *E, width, stride int, src source, rows, cols int)
	// columns copies k×cols elements with k down the column, so that k runs along the row: word (p, j) goes to
	// dst[j·ldd+p]. It may use spare; only tiers with tiles have it.
	columns func(dst *E, ldd int, src source, k, cols int, spare []E)
}

func genericPacker[E tensor.Number]() packer[E] {
	return packer[E]{copyRows: copyRows[E], transpose: transpose[E], panels: panels[E]}
}

func copyRows[E tensor.Number](dst *E, ldd int, src source, rows, cols int) {
	for i := range rows {
		load(unsafe.Slice(at(dst, i*ldd), cols), 1, src.at(i, 0))
	}
}

func transpose[E tensor.Number](dst *E, ldd int, src source, rows, cols int) {
	for i := range rows {
		load(unsafe.Slice(at(dst, i), (cols-1)*ldd+1), ldd, src.at(i, 0))
	}
}

func panels[E tensor.Number](dst *E, width, stride int, src source, rows, cols int) {
	for p := range rows {
		for j := 0; j < cols; j += width {
			load(unsafe.Slice(at(dst, j/width*stride+p*width), min(width, cols-j)), 1, src.at(p, j))
		}
	}
}

// load copies consecutive elements of src to every step-th element of dst, as many as fit.
func load[E tensor.Number](dst []E, step int, src source) {
	n := (len(dst) + step - 1) / step
	switch {
	case src.dtype == tensor.BF16:
		for i, v := range unsafe.Slice((*tensor.BFloat16)(src.p), n) {
			dst[i*step] = E(v.Float32())
		}
	case src.dtype == tensor.F16:
		for i, v := range unsafe.Slice((*tensor.Float16)(src.p), n) {
			dst[i*step] = E(v.Float32())
		}
	case src.dtype.Blocked():
		for i := range n {
			dst[i*step] = E(src.dtype.InBlock(src.block(i), src.i, src.j+i))
		}
	case src.dtype == tensor.F32:
		loadRounded(dst, step, unsafe.Slice((*float32)(src.p), n), src.round)
	default:
		for i, v := range unsafe.Slice((*float64)(src.p), n) {
			dst[i*step] = E(v)
		}
	}
}

func loadRounded[E tensor.Number](dst []E, step int, src []float32, to tensor.DType) {
	switch to {
	case tensor.BF16:
		for i, v := range src {
			dst[i*step] = E(tensor.BF16FromFloat32(v).Float32())
		}
	case tensor.F16:
		for i, v := range src {
			dst[i*step] = E(tensor.F16FromFloat32(v).Float32())
		}
	case tensor.TF32:
		for i, v := range src {
			dst[i*step] = E(tensor.RoundTF32(v))
		}
	default:
		for i, v := range src {
			dst[i*step] = E(v)
		}
	}
}

func at[E tensor.Number](p *E, i int) *E {
	return (*E)(unsafe.Add(unsafe.Pointer(p), i*int(unsafe.Sizeof(*p))))
}
