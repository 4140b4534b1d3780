package flash

import (
	"unsafe"

	"anneal/tensor"
)

// Matrix units multiply operands whose words are in rows. Because scores are stored transposed, the other operand of
// a product with them, and its sums, must be transposed:
//
//	Oᵀ  [E, queries] += Vᵀ · P
//	dQᵀ [E, queries] += Kᵀ · dS
//
// in panels of tileN queries; dK and dV are not transposed. One call processes all panels that see part of a tile of
// keys, because configuring the units costs as much as a quarter of a product.

// piece describes the work of a panel with a tile of keys.
type piece struct {
	q, o, stat int     // offsets of the panel's queries, sums and statistics, in bytes
	lo, rows   int     // keys of the tile, multiples of tileM
	seen       *uint32 // bits of queries by key of the tile from lo on; nil if all are seen
	fresh      int     // not 0 if the sums are empty and their memory is undefined
}

// pieces returns the work of the panels of w with its tile.
func (r *runner[T]) pieces(w *work, s *shape, ld, led int) []piece {
	w.pieces = w.pieces[:0]
	for u := range w.units {
		for i := range w.of(u) {
			p := &w.of(u)[i]
			if p.lo >= p.hi {
				continue
			}
			at := u*s.queries + i*r.tileN
			x := piece{
				q: at * led / r.pair * 4, o: at * ld * 4, stat: at * 4, lo: p.lo, rows: roundUp(p.hi-p.lo, r.tileM),
			}
			x.seen, x.fresh = r.mask(w, len(w.pieces), p, x.rows), p.begin()
			w.pieces = append(w.pieces, x)
		}
	}
	return w.pieces
}

// unitPiece describes the backward work of a unit, two panels, with a tile of keys.
type unitPiece struct {
	q, do, dq, stat int // offsets of the unit's queries, output gradients, sums and statistics, in bytes
	panels          [2]struct {
		lo, rows int // as in piece; rows is 0 if no key is seen
		seen     *uint32
		fresh    int // for dQ
	}
	halves [2]struct{ from, count int } // for each half of the tile: the panels that see some of its keys
}

// unitPieces returns the work of the units of w with its tile.
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

// begin returns 1 if the panel's sums are empty, and marks them as not empty.
func (p *panel) begin() int {
	if p.begun {
		return 0
	}
	p.begun = true
	return 1
}

// mask returns the bits of the keys that panel p, number n of w, sees in its tile; nil if it sees them all.
func (r *runner[T]) mask(w *work, n int, p *panel, rows int) *uint32 {
	if !p.masked && rows == p.hi-p.lo {
		return nil
	}
	seen := w.seen[n*r.blockK:][:rows]
	see(seen, &w.tile, p)
	return &seen[0]
}

// roomForPieces allocates the pieces of all panels and units of w.
func (r *runner[T]) roomForPieces(w *work) {
	panels := max(cap(w.panels), cap(w.units)*len(unitPiece{}.panels))
	w.pieces, w.chores = make([]piece, 0, panels), make([]unitPiece, 0, cap(w.units))
	w.seen = make([]uint32, panels*r.blockK)
}

// steps returns the number of steps of matrix units for the words of queries and keys, 16 per step.
func (k *kernels[T]) steps(slope, size int) int { return (slope + k.words(size) + 15) / 16 }

// turn writes the sums src [Count, ld] of unit u to dst, in transposed panels if sums are transposed; flat is scratch
// memory for one.
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

// upright returns sums [rows, ld] of panels that may be stored transposed; flat is scratch memory for them.
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

// settle rounds transposed sums of n queries of unit u, times a factor of each, to rows row, row+step, … of x from
// column col on. In a unit of one query of several heads, each head has its own columns. flat is scratch memory for a
// panel.
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

// see sets the bits of the queries of panel p that see each key in rows p.lo… of a tile.
func see(seen []uint32, t *keyTile, p *panel) {
	clear(seen)
	for i := range t.runs {
		k := &t.runs[i]
		for r := max(k.at, p.lo); r < min(k.at+k.Count, p.lo+len(seen)); r++ {
			seen[r-p.lo] = p.near(k, k.First+(r-k.at)*k.Step)
		}
	}
	for c := 0; p.common > 0 && c < p.Count; {
		first, document := p.start(c), uint32(0) // neighbouring queries mostly belong to one document
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

// start returns the start of the document of query c of the panel.
func (p *panel) start(c int) int { return int(p.starts[p.First+c*p.Step]) }

// near returns the queries of the panel within the run's distance limits of a key.
func (p *panel) near(k *run, key int) uint32 {
	before := func(position int) int { // number of queries up to a position
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
