package flash

import (
	"unsafe"

	"anneal/tensor"
)

// shareBlocks turns rows that are much shorter than a block of queries, and not computed in columns (columns.go), into
// documents of longer rows that fill blocks, because a block costs nearly the same however few queries it has. Every
// token sees the same keys, and results keep their bits: blocks are computed whole, so that every sum has its terms in
// the same order, plus zeros. Half blocks of queries waste least; all keys are in one block, no part of which is
// skipped. Rows are not joined if they are not much shorter than a panel and a stair, which cut sums; if their length
// is not a multiple of a group, because pairs would change; or if an operand is not finite, because 0·NaN is NaN.
func (r *runner[T]) shareBlocks(s *shape, operands ...*tensor.Tensor) {
	if s.layout != nil || s.slopes != nil || s.from > 0 || r.attend != nil ||
		2*s.length > min(stair, r.tileN) || s.length%r.group != 0 {
		return
	}
	together := 1
	for n := 2; n*s.length <= min(r.blockQ/2, r.blockK); n++ {
		if s.rows%n == 0 {
			together = n
		}
	}
	if together == 1 {
		return
	}
	for _, x := range operands {
		if !finite(x) {
			return
		}
	}
	if len(r.starts) < s.tokens {
		r.starts = make([]int32, s.tokens)
	}
	for i := range s.tokens {
		first := 0
		if len(s.start) > 0 {
			first = max(0, int(s.start[i]))
		}
		r.starts[i] = int32(i/s.length%together*s.length + first)
	}
	s.start, s.length, s.rows, s.whole = r.starts, together*s.length, s.rows/together, true
}

// finite reports whether no element is NaN or Inf. Their exponents have all bits set, so adding one to the exponent
// changes the sign.
func finite(x *tensor.Tensor) bool {
	size := x.DType().Size()
	lanes := uint64(1)
	for at := 8 * size; at < 64; at += 8 * size {
		lanes |= 1 << at
	}
	exponent, one, sign := lanes*0x7f80, lanes<<7, lanes<<15
	switch x.DType() {
	case tensor.F32:
		exponent, one, sign = lanes*0x7f800000, lanes<<23, lanes<<31
	case tensor.F16:
		exponent, one = lanes*0x7c00, lanes<<10
	case tensor.F64:
		exponent, one, sign = 0x7ff<<52, 1<<52, 1<<63
	}
	raw, carries := x.Raw(), uint64(0)
	for _, v := range unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(raw))), len(raw)/8) {
		carries |= v&exponent + one
	}
	for at := len(raw) &^ 7; at < len(raw); at += size { // size divides 8
		var v uint64
		for i := range size {
			v |= uint64(raw[at+i]) << (8 * i)
		}
		carries |= v&exponent + one
	}
	return carries&sign == 0
}
