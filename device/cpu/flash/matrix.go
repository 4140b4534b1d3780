package flash

import (
	"unsafe"

	"anneal/tensor"
)

// matrix is a tensor [rows, cols] in the caller's storage: exactly one of wide, narrow and half is set.
type matrix[T tensor.Number] struct {
	wide   []T
	narrow []tensor.BFloat16
	half   []tensor.Float16
	cols   int
}

func matrixOf[T tensor.Number](t *tensor.Tensor) matrix[T] {
	switch t.DType() {
	case tensor.BF16:
		return matrix[T]{narrow: t.BF16(), cols: t.Cols()}
	case tensor.F16:
		return matrix[T]{half: t.F16(), cols: t.Cols()}
	}
	return matrix[T]{wide: wide[T](t), cols: t.Cols()}
}

// wide returns the elements of a tensor stored in T.
func wide[T tensor.Number](t *tensor.Tensor) []T {
	want := tensor.F32
	if unsafe.Sizeof(T(0)) == 8 {
		want = tensor.F64
	}
	if t.DType() != want {
		panic("flash: " + t.String() + " where " + want.String() + " is computed")
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(t.Raw()))), t.Len())
}

// read writes x[row : row+rows, col : col+cols] to dst [≥ rows, ld], held across, with zeros in columns cols to ld and in
// what else there is of the last rows' words held down.
func (k *kernels[T]) read(dst []T, ld int, x *matrix[T], row, col, rows, cols int) {
	words := ld / k.pair
	if cols < ld {
		clear(dst[:rows*words])
	}
	clear(dst[rows*words : roundUp(rows, k.pair)*words])
	from := row*x.cols + col
	switch {
	case x.narrow != nil:
		k.loadBF16(dst, ld, x.narrow[from:], x.cols, rows, cols)
	case x.half != nil:
		k.loadF16(dst, ld, x.half[from:], x.cols, rows, cols)
	default:
		k.load(dst, ld, x.wide[from:], x.cols, rows, cols, 1)
	}
}

// down writes dst, held down, from src [rows, cols], held across: nothing where both are the same.
func (k *kernels[T]) down(dst []T, ldd int, src []T, lds, rows, cols int) {
	if k.pair > 1 {
		k.zip(dst, ldd, src, lds, roundUp(rows, k.pair), cols)
	}
}

// takeDown cuts memory for words held down, n of them, unless they are those held across.
func (k *kernels[T]) takeDown(c *carver[T], across []T, n int) []T {
	if k.pair == 1 {
		return across
	}
	return c.take(n)
}

// words returns how many words n elements make.
func (k *kernels[T]) words(n int) int { return (n + k.pair - 1) / k.pair }

// write rounds scale times src [rows, ld] to x[row : row+rows, col : col+cols].
func (k *kernels[T]) write(x *matrix[T], row, col, rows, cols int, src []T, ld int, scale T) {
	from := row*x.cols + col
	switch {
	case x.narrow != nil:
		k.storeBF16(x.narrow[from:], x.cols, src, ld, rows, cols, scale)
	case x.half != nil:
		k.storeF16(x.half[from:], x.cols, src, ld, rows, cols, scale)
	default:
		k.load(x.wide[from:], x.cols, src, ld, rows, cols, scale)
	}
}

// hide sets to −Inf what the mask hides in a tile s [rows, ld] of keys lo… and the queries at positions from…to of the row,
// which stand in columns 0…width.
func hide[T tensor.Number](s []T, ld, rows, lo int, sh *shape, row, from, to, width int) {
	ninf := negInf[T]()
	for r := max(0, from+1-lo); r < rows; r++ { // key lo+r is hidden from earlier queries
		line := s[r*ld : r*ld+min(width, lo+r-from)]
		for c := range line {
			line[c] = ninf
		}
	}
	if sh.start == nil {
		return
	}
	for c, first := range sh.start[row*sh.length+from : row*sh.length+to] {
		for r := range min(rows, int(first)-lo) {
			s[r*ld+c] = ninf
		}
	}
}
