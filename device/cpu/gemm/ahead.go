package gemm

import (
	"unsafe"

	"anneal/device"
	"anneal/tensor"
)

// A trail describes the cache lines of a block that will be packed next, in portions that one kernel call prefetches.
// Packing would wait for memory, which kernels hardly use. A trail only computes addresses and never reads.
type trail struct {
	p          uintptr
	line       int // bytes between portions: to the next row, or to the next cache line of the rows
	step       int // bytes between prefetches within a portion
	count      int // portions side by side, before moving on …
	turn       int // … by this many bytes
	left, done int
}

// portion returns the address and the step of the next portion.
func (t *trail) portion() (p uintptr, step int) {
	if t.left == 0 {
		return t.p, 0
	}
	p = t.p
	t.left--
	t.p += uintptr(t.line)
	if t.done++; t.done == t.count {
		t.done = 0
		t.p += uintptr(t.turn)
	}
	return p, t.step
}

// prefetch takes a portion of next for each tile of the visit, and one of right or, when that is done, of later.
func (v *visit) prefetch(tiles int, next, right, later *trail) {
	for tile := range tiles {
		behind := later
		if right.left > 0 {
			behind = right
		}
		f := &v.ahead[tile]
		f.next, f.step = next.portion()
		f.later, f.stride = behind.portion()
	}
}

// trailA returns the trail of rows rows of a at K block p; one kernel call covers words words.
func (x *product[E]) trailA(i, p, rows, words int) trail {
	return x.trail(x.blockA(i, p), x.form == device.TN, rows, min(x.cut.depth, x.cut.k-p), words)
}

// trailB returns the trail of cols columns of b at K block p.
func (x *product[E]) trailB(p, j, cols, words int) trail {
	return x.trail(x.blockB(p, j), x.form != device.NT, cols, min(x.cut.depth, x.cut.k-p), words)
}

// trail returns the trail of a block of n rows along k or, if down is set, n columns.
func (x *product[E]) trail(s source, down bool, n, k, words int) trail {
	size := s.dtype.Size()
	ld := s.ld * size
	start := uintptr(s.p)
	if !down {
		return trail{p: start, line: ld, step: 4 * x.cut.group * size, count: n, left: n}
	}
	lines := ceil(int(start&63)+n*size, 64)
	reach := max(1, words/4) // rows per portion
	return trail{
		p: start, line: 64, step: ld, count: lines, turn: reach*ld - 64*lines, left: lines * ((k + reach - 1) / reach),
	}
}

// resultTrail makes t the trail of cols columns of the result, from row i on, in that many portions of rows rows.
// While one column of tiles is computed, the lines of the next one are prefetched. Every column calls it, so it
// neither divides nor copies: loads of fields that were just stored would wait.
func (x *product[E]) resultTrail(t *trail, i, j, cols, rows, portions int) {
	size := x.dst.dtype.Size()
	start, ld := uintptr(x.dst.at(i, j)), x.dst.ld*size
	lines := ceil(int(start&63)+cols*size, 64)
	t.p, t.line, t.step = start&^63, 64, ld
	t.count, t.turn = lines, rows*ld-64*lines
	t.left, t.done = lines*portions, 0
}

// packedTrail returns the trail of packed panels of b.
func packedTrail[E tensor.Number](b []E, words int) trail {
	lines := ceil(len(b)*int(unsafe.Sizeof(b[0])), 64)
	reach := max(1, words/4)
	return trail{p: uintptr(unsafe.Pointer(&b[0])), line: 64 * reach, step: 64, left: ceil(lines, reach)}
}
