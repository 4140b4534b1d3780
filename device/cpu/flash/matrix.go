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
	rows   int
	cols   int
}

func matrixOf[T tensor.Number](t *tensor.Tensor) matrix[T] {
	switch t.DType() {
	case tensor.BF16:
		return matrix[T]{narrow: t.BF16(), rows: t.Rows(), cols: t.Cols()}
	case tensor.F16:
		return matrix[T]{half: t.F16(), rows: t.Rows(), cols: t.Cols()}
	}
	return matrix[T]{wide: wide[T](t), rows: t.Rows(), cols: t.Cols()}
}

// wide returns the elements of a tensor stored in T.
func wide[T tensor.Number](t *tensor.Tensor) []T {
	want := tensor.F32
	if unsafe.Sizeof(T(0)) == 8 {
		want = tensor.F64
	}
	if t.DType() != want {
		panic("flash: " + t.String() + ", want dtype " + want.String())
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(t.Raw()))), t.Len())
}

// readStrip writes rows row, row+step, … of x, from column col on, to dst [rows, ld], packed across, with zeros in
// the rest of the last panel of columns.
func (k *kernels[T]) readStrip(dst []T, ld int, x *matrix[T], row, step, col, rows, cols int) {
	words, whole, end := ld/k.pair, cols/k.pair, roundUp(cols, k.tileN*k.pair)/k.pair
	for r := 0; r < rows && whole < end; r++ {
		clear(dst[r*words+whole : r*words+end])
	}
	from, stride := row*x.cols+col, step*x.cols
	switch {
	case x.narrow != nil:
		k.loadBF16(dst, ld, x.narrow[from:], stride, rows, cols)
	case x.half != nil:
		k.loadF16(dst, ld, x.half[from:], stride, rows, cols)
	default:
		k.load(dst, ld, x.wide[from:], stride, rows, cols, 1)
	}
}

// read writes x[row : row+rows, col : col+cols] to dst [≥ rows, ld], packed across, with zeros in columns cols to ld
// and in the rest of the last rows' groups when packed down.
func (k *kernels[T]) read(dst []T, ld int, x *matrix[T], row, col, rows, cols int) {
	words := ld / k.pair
	if cols < ld {
		clear(dst[:rows*words])
	}
	clear(dst[rows*words : roundUp(rows, k.group)*words])
	k.readStrip(dst, ld, x, row, 1, col, rows, cols)
}

// readKeys reads the columns from col on of a tile's keys in a row of the batch to dst [Bk, ld], packed across, with
// zeros for keys outside the row and up to a multiple of tileM rows. x may be a ring, whose first row follows its
// last.
func (k *kernels[T]) readKeys(dst []T, ld int, x *matrix[T], s *shape, row, col int, t *keyTile) {
	words, width, end := ld/k.pair, roundUp(s.Size, k.tileN*k.pair)/k.pair, 0
	blank := func(from, to int) {
		for r := from; r < to; r++ {
			clear(dst[r*words : r*words+width])
		}
	}
	for i := range t.runs {
		sp := &t.runs[i]
		n := min(sp.Count, count(sp.Strip, s.length-1))
		for done := 0; done < n; {
			at := (row*s.length + sp.First + done*sp.Step) % x.rows
			part := min(n-done, (x.rows-1-at)/sp.Step+1)
			k.readStrip(dst[(sp.at+done)*words:], ld, x, at, sp.Step, col, part, s.Size)
			done += part
		}
		end = sp.at + sp.Count
		blank(sp.at+n, end)
	}
	blank(end, roundUp(end, k.tileM))
}

// down packs src [rows, cols], packed across, down into dst. It does nothing if both layouts are the same.
func (k *kernels[T]) down(dst []T, ldd int, src []T, lds, rows, cols int) {
	if k.pair > 1 {
		k.zip(dst, ldd, src, lds, roundUp(rows, k.group), cols)
	}
}

// takeDown allocates n words packed down, unless that layout is the same as across.
func (k *kernels[T]) takeDown(c *carver[T], across []T, n int) []T {
	if k.pair == 1 {
		return across
	}
	return c.take(n)
}

// words returns the number of words for n elements, in whole groups.
func (k *kernels[T]) words(n int) int { return roundUp(n, k.group) / k.pair }

// column returns the offset, in words, of column c of a matrix packed down.
func (k *kernels[T]) column(c int) int { return c * k.group / k.pair }

// write rounds scale times src [rows, ld] to x[row : row+rows, col : col+cols].
func (k *kernels[T]) write(x *matrix[T], row, col, rows, cols int, src []T, ld int, scale T) {
	k.writeStrip(x, row, 1, col, rows, cols, src, ld, scale)
}

// writeStrip rounds scale times src [rows, ld] to rows row, row+step, … of x from column col on.
func (k *kernels[T]) writeStrip(x *matrix[T], row, step, col, rows, cols int, src []T, ld int, scale T) {
	from, stride := row*x.cols+col, step*x.cols
	switch {
	case x.narrow != nil:
		k.storeBF16(x.narrow[from:], stride, src, ld, rows, cols, scale)
	case x.half != nil:
		k.storeF16(x.half[from:], stride, src, ld, rows, cols, scale)
	default:
		k.load(x.wide[from:], stride, src, ld, rows, cols, scale)
	}
}
