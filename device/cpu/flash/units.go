package flash

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
}

// pieces returns what the panels of w have to do with its tile.
func (r *runner[T]) pieces(w *work, s *shape, ld, led int) []piece {
	r.reserveSeen(w)
	w.pieces = w.pieces[:0]
	for u := range w.units {
		for i := range w.of(u) {
			p := &w.of(u)[i]
			if p.lo >= p.hi {
				continue
			}
			at := u*s.queries + i*r.tileN
			x := piece{q: at * led / r.pair * 4, o: at * ld * 4, stat: at * 4, lo: p.lo, rows: roundUp(p.hi-p.lo, r.tileM)}
			x.seen = r.mask(w, len(w.pieces), p, x.rows)
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
	}
	halves [2]struct{ from, count int } // of the tile: the panels that see some of its keys
}

// unitPieces returns what the units of w have to do with its tile.
func (r *runner[T]) unitPieces(w *work, s *shape, ld, led int) []unitPiece {
	r.reserveSeen(w)
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
			y.seen = r.mask(w, u*len(x.panels)+i, p, y.rows)
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

// mask returns where the bits of the keys that panel p, number n of w, sees of its tile begin; nil if it sees them all.
func (r *runner[T]) mask(w *work, n int, p *panel, rows int) *uint32 {
	if !p.masked && rows == p.hi-p.lo {
		return nil
	}
	seen := w.seen[n*r.blockK:][:rows]
	see(seen, &w.tile, p)
	return &seen[0]
}

// reserveSeen makes room for the bits of all panels of w.
func (r *runner[T]) reserveSeen(w *work) {
	if need := cap(w.panels) * r.blockK; len(w.seen) < need {
		w.seen = make([]uint32, need)
	}
}

// steps returns how many steps of matrix units words of queries and keys are, 16 in one.
func (k *kernels[T]) steps(slope, size int) int { return (slope + k.words(size) + 15) / 16 }

// turn writes src [rows, ld] to dst, in panels that are turned where sums are; flat has room for one.
func (r *runner[T]) turn(dst, src []T, ld, stride, rows int, flat []T) {
	if r.attend == nil {
		r.load(dst, ld, src, stride, rows, ld, 1)
		return
	}
	for p := 0; p < rows; p += r.tileN {
		n := min(r.tileN, rows-p)
		r.load(flat, ld, src[p*stride:], stride, n, ld, 1)
		clear(flat[n*ld : r.tileN*ld])
		r.transpose(dst[p*ld:], flat, ld, ld)
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

// see sets which queries of panel p see each key in rows p.lo… of a tile.
func see(seen []uint32, t *keyTile, p *panel) {
	clear(seen)
	for i := range t.runs {
		k := &t.runs[i]
		for r := max(k.at, p.lo); r < min(k.at+k.Count, p.lo+len(seen)); r++ {
			key := k.First + (r-k.at)*k.Step
			from, to := min(32, count(p.Strip, key+k.Near-1)), 32 // queries before the key, or too near, do not see it
			if k.Far <= p.last-key {
				to = max(from, count(p.Strip, key+k.Far-1))
			}
			seen[r-p.lo] = uint32(uint64(1)<<to - uint64(1)<<from)
		}
	}
	for c := 0; p.common > 0 && c < p.Count; c++ {
		first := int(p.starts[p.First+c*p.Step])
		for i := range t.runs {
			k := &t.runs[i]
			for r := max(k.at, p.lo); r < min(k.at+min(k.Count, count(k.Strip, first-1)), p.lo+len(seen)); r++ {
				seen[r-p.lo] &^= 1 << c
			}
		}
	}
}
