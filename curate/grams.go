package curate

import (
	"math/bits"
	"slices"
)

// gramFacts is how much of a text its repeated n-grams of tokens take. The hash of an n-gram is made from that of the
// (n−1)-gram at the same place and the next token, and only places whose (n−1)-gram occurs twice are looked at: a repeated
// n-gram starts with a repeated (n−1)-gram.
type gramFacts struct {
	top [5]int  // [n]: characters of the most frequent n-gram, with spaces between its tokens, times its count
	dup [11]int // [n]: characters of the n-grams that occurred before, none counted twice

	active []gram
}

type gram struct {
	at   int32  // the token it starts with
	slot uint32 // of the table that counts it
	hash uint64
}

const counted = 1 << 31 // flag on a count: the n-gram was met

func (g *gramFacts) scan(w *wordFacts, t *table) {
	*g = gramFacts{active: g.active[:0]}
	tokens := len(w.hashes)
	g.active = slices.Grow(g.active, tokens)[:tokens]
	for i, h := range w.hashes {
		g.active[i] = gram{at: int32(i), hash: h}
	}
	for n := 2; n <= 10 && tokens >= n; n++ {
		t.reset(len(g.active))
		for len(g.active) > 0 && int(g.active[len(g.active)-1].at) > tokens-n {
			g.active = g.active[:len(g.active)-1]
		}
		next := w.hashes[n-1:]
		for i := range g.active {
			a := &g.active[i]
			a.hash = (bits.RotateLeft64(a.hash*mix1, 31) ^ next[a.at]) * mix2
			a.hash ^= a.hash >> 29
			a.slot = t.add(a.hash)
		}
		if n <= 4 {
			g.top[n] = g.best(w, n, t)
		} else {
			g.dup[n] = g.repeated(w, n, t)
		}
		kept := 0
		for _, a := range g.active {
			g.active[kept] = a
			if t.slots[a.slot].n&^counted > 1 {
				kept++
			}
		}
		g.active = g.active[:kept]
	}
}

func (w *wordFacts) span(at int32, n int) int { return int(w.chars[int(at)+n] - w.chars[at]) }

// best returns the characters of the most frequent n-gram, of equals the first.
func (g *gramFacts) best(w *wordFacts, n int, t *table) int {
	at, most := int32(0), uint32(1)
	for i := range g.active {
		if c := t.slots[g.active[i].slot].n; c > most {
			at, most = g.active[i].at, c
		}
	}
	return (w.span(at, n) + n - 1) * int(most)
}

// repeated walks over the text: an n-gram that was met before counts, and the walk goes on behind it.
func (g *gramFacts) repeated(w *wordFacts, n int, t *table) int {
	chars, next := 0, int32(0)
	for i := range g.active {
		a := &g.active[i]
		count := &t.slots[a.slot].n
		switch {
		case a.at < next:
		case *count&counted != 0:
			chars += w.span(a.at, n)
			next = a.at + int32(n)
		default:
			*count |= counted
		}
	}
	return chars
}
