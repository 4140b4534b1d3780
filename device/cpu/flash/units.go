package flash

import (
	"unsafe"

	"anneal/tensor"
)

// Matrix units multiply operands whose words lie in rows, so that scores, held transposed as everywhere, ask for the other operand of a
// product with them to be turned, and its sums with it:
//
//	Oᵀ  [E, queries] += Vᵀ · P
//	dQᵀ [E, queries] += Kᵀ · dS
//
// in panels of tileN queries; dK and dV are as they are. All panels that see something of a tile of keys are computed at one call, since to
// ready the units costs as much as a quarter of a product.

// piece is what a panel has to do with a tile of keys.
type piece struct {
	q, o, stat int     // where the panel's queries, sums and statistics begin, in bytes
	lo, rows   int     // keys of the tile, multiples of tileM
	seen       *uint32 // bits of queries by key of the tile from lo on, unless all are seen
	fresh      int     // not 0 if nothing is in the sums yet, which need not be zero then
}

// pieces returns what the panels of w have to do with its tile.
func (r *runner[T]) pieces(w *work, s *shape, ld, led int) []piece {
	w.pieces = w.pieces[:0]
	for u := range w.units {
		for i := range w.of(u) {
			p := &w.of(u)[i]
			if p.lo >= p.hi {
				continue
			}
			at := u*s.queries + i*r.tileN
			x := piece{q: at * led / r.pair * 4, o: at * ld * 4, stat: at * 4, lo: p.lo, rows: roundUp(p.hi-p.lo, r.tileM)}
			x.seen, x.fresh = r.mask(w, len(w.pieces), p, x.rows), p.begin()
			w.pieces = append(w.pieces, x)
		}
	}
	return w.pieces
}

// unitPiece is what a unit, two panels, has to do with a tile of keys, backward.
type unitPiece struct {
	q, do, dq, stat int // where the unit's queries, output gradients, sums and statistics begin, in bytes
	panels          [2]struct {
		lo, rows int // as in piece; rows is 0 if nothing is seen
		seen     *uint32
		fresh    int // for dQ
	}
	halves [2]struct{ from, count int } // of the tile: the panels that see some of its keys
}

// unitPieces returns what the units of w have to do with its tile.
func (r *runner[T]) unitPieces(w *work, s *shape, ld, led int) []unitPiece {
	w.chores = w.chores[:0]
	for u := range w.units {
		at := u * s.queries
		x := unitPiece{q: at * led / r.pair * 4, do: at * ld / r.pair * 4, dq: at * ld * 4, stat: at * 4}
		for i := range w.of(u) {
			p, y := &w.of(u)[i], &x.panels[i]
			if p.lo >= p.hi {
				continue
			}
			y.lo, y.rows = p.lo, roundUp(p.hi-p.lo, r.tileM)
			y.seen, y.fresh = r.mask(w, u*len(x.panels)+i, p, y.rows), p.begin()
			for h := range x.halves {
				if half := &x.halves[h]; y.lo <= h*r.tileM && h*r.tileM < y.lo+y.rows {
					if half.count == 0 {
						half.from = i
					}
					half.count++
				}
			}
		}
		w.chores = append(w.chores, x)
	}
	return w.chores
}

// begin returns 1 if the panel's sums are still empty, and notes that they are no longer.
func (p *panel) begin() int {
	if p.begun {
		return 0
	}
	p.begun = true
	return 1
}

// mask returns where the bits of the keys that panel p, number n of w, sees of its tile begin; nil if it sees them all.
func (r *runner[T]) mask(w *work, n int, p *panel, rows int) *uint32 {
	if !p.masked && rows == p.hi-p.lo {
		return nil
	}
	seen := w.seen[n*r.blockK:][:rows]
	see(seen, &w.tile, p)
	return &seen[0]
}

// roomForPieces makes room for what all panels and units of w have to do with a tile.
func (r *runner[T]) roomForPieces(w *work) {
	panels := max(cap(w.panels), cap(w.units)*len(unitPiece{}.panels))
	w.pieces, w.chores = make([]piece, 0, panels), make([]unitPiece, 0, cap(w.units))
	w.seen = make([]uint32, panels*r.blockK)
}

// steps returns how many steps of matrix units words of queries and keys are, 16 in one.
func (k *kernels[T]) steps(slope, size int) int { return (slope + k.words(size) + 15) / 16 }

// turn writes the sums src [Count, ld] of unit u to dst, in panels that are turned where sums are; flat has room for one.
func (r *runner[T]) turn(dst, src []T, w *work, u, ld, stride int, flat []T) {
	rows := w.units[u].Count
	if r.attend == nil {
		r.load(dst, ld, src, stride, rows, ld, 1)
		return
	}
	for p := 0; p < rows; p += r.tileN {
		n := min(r.tileN, rows-p)
		r.load(flat, ld, src[p*stride:], stride, n, ld, 1)
		clear(flat[n*ld : r.tileN*ld])
		r.transpose(dst[p*ld:], flat, ld, ld)
		w.of(u)[p/r.tileN].begun = true
	}
}

// upright returns sums [rows, ld] of panels that may be held turned; flat has room for them.
func (r *runner[T]) upright(flat, turned []T, ld, rows int) []T {
	if r.attend == nil {
		return turned
	}
	n := r.tileN
	square := flat[roundUp(rows, n)*ld:]
	for p := 0; p < rows; p += n {
		for c := 0; c < ld; c += n {
			r.transpose(square, turned[p*ld+c*n:], n, n)
			r.load(flat[p*ld+c:], ld, square, n, n, n, 1)
		}
	}
	return flat
}

// settle rounds turned sums of n queries of unit u, times a factor of each, to rows row, row+step, … of x from column col on. The heads of a
// unit that has one query of each have columns of their own. flat has room for a panel.
func (r *runner[T]) settle(x *matrix[T], w *work, u, row, step, col, n, size int, sums []T, ld int, f, flat []T) {
	width, stride := r.tileN, step*x.cols
	for p := 0; p < n; p += width {
		panel, rows := sums[p*ld:], min(width, n-p)
		if !w.of(u)[p/width].begun {
			clear(panel[:width*ld])
		}
		at := (row+p*step)*x.cols + col
		if rows == width && size%width == 0 && w.units[u].beside == nil {
			r.lower(x.narrow[at:], stride, panel, f[p:], size)
			continue
		}
		to := unsafe.Slice((*tensor.BFloat16)(unsafe.Pointer(unsafe.SliceData(flat))), width*ld)
		r.lower(to, ld, panel, f[p:], size)
		for i := range rows {
			if heads := w.units[u].beside; heads != nil {
				at = row*x.cols + heads[i]*size - i*stride
			}
			copy(x.narrow[at+i*stride:][:size], to[i*ld:])
		}
	}
}

// see sets which queries of panel p see each key in rows p.lo… of a tile.
func see(seen []uint32, t *keyTile, p *panel) {
	clear(seen)
	for i := range t.runs {
		k := &t.runs[i]
		for r := max(k.at, p.lo); r < min(k.at+k.Count, p.lo+len(seen)); r++ {
			seen[r-p.lo] = p.near(k, k.First+(r-k.at)*k.Step)
		}
	}
	for c := 0; p.common > 0 && c < p.Count; {
		first, document := p.start(c), uint32(0) // queries side by side are mostly of one document
		for ; c < p.Count && p.start(c) == first; c++ {
			document |= 1 << c
		}
		for i := range t.runs {
			k := &t.runs[i]
			for r := max(k.at, p.lo); r < min(k.at+min(k.Count, count(k.Strip, first-1)), p.lo+len(seen)); r++ {
				seen[r-p.lo] &^= document
			}
		}
	}
}

// start returns where the document of query c of the panel begins.
func (p *panel) start(c int) int { return int(p.starts[p.First+c*p.Step]) }

// near returns the queries of the panel that are neither before a key of a run, or too near, nor too far from it.
func (p *panel) near(k *run, key int) uint32 {
	before := func(position int) int { // how many queries are
		if p.Step == 1 {
			return max(0, position-p.First)
		}
		return count(p.Strip, position-1)
	}
	from, to := min(32, before(key+k.Near)), 32
	if k.Far <= p.last-key {
		to = max(from, min(32, before(key+k.Far)))
	}
	return uint32(uint64(1)<<to - uint64(1)<<from)
}
