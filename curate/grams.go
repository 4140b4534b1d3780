package curate

import "slices"

// gramFacts measures how much of a text its repeated n-grams of tokens cover. From n to n+1 it keeps the places whose
// n-gram occurred before, each with the first place of that n-gram, because a longer n-gram can repeat only there.
// Mostly the token that follows is the same as at the first place, so one comparison is enough. Only the other places,
// and the 2-grams, need a table.
type gramFacts struct {
	top [5]int  // [n]: characters of the most frequent n-gram, with spaces between its tokens, times its count
	dup [11]int // [n]: characters of the n-grams that occurred before, none counted twice

	firsts  []uint32 // by place: the first 2-gram that falls there
	repeats []repeat
	counts  []uint32 // by first place: n-grams that follow it
	passed  []uint8  // by token: the last n for which the walk over n-grams passed over it
}

// repeat is a place whose n-gram occurred before.
type repeat struct {
	at, first uint32 // tokens
}

// join returns the hash of an n-gram, from the hash of its last token and a number that stands for the tokens before
// it.
func join(gram, token uint64) uint64 { return gram*mix3 + token }

func (g *gramFacts) scan(w *tokenFacts, t *table) {
	g.top, g.dup = [5]int{}, [11]int{}
	tokens := len(w.hashes)
	if tokens < 2 {
		return
	}
	g.pairs(w.hashes, t)
	g.passed = slices.Grow(g.passed[:0], tokens)[:tokens]
	clear(g.passed)
	for n := 2; n <= 10 && tokens >= n; n++ {
		if n > 2 {
			g.extend(w.hashes, n, t)
		}
		if n <= 4 {
			g.top[n] = g.best(w, n)
		} else {
			g.dup[n] = g.walk(w, n)
		}
	}
}

// pairs fills repeats with the repeated 2-grams. Each 2-gram hashes to a slot, which keeps the first 2-gram of the
// text that hashes there; the loop runs backwards, so this needs no comparison. Later 2-grams of a slot are repeats of
// its first if they are equal to it; for the others, t finds the first occurrence.
func (g *gramFacts) pairs(hashes []uint64, t *table) {
	n := len(hashes) - 1
	size := sizeFor(2 * n)
	if cap(g.firsts) < size { // old contents are overwritten before they are read
		g.firsts = make([]uint32, size)
	}
	g.repeats = slices.Grow(g.repeats[:0], n)[:n]
	firsts, repeats, shift, mask := g.firsts[:size], g.repeats, 64-log2(size), uint64(size-1)
	last := hashes[n]
	for i := n - 1; i >= 0; i-- {
		h := hashes[i]
		p := join(h, last) * scatter >> shift & mask
		last = h
		firsts[p] = uint32(i)
		repeats[i].first = uint32(p)
	}
	kept := 0
	for i := range n {
		first := firsts[uint64(repeats[i].first)&mask]
		repeats[kept] = repeat{uint32(i), first}
		kept += differ(uint64(first), uint64(i))
	}
	g.repeats = repeats[:kept]
	others := 0
	for _, r := range g.repeats {
		others += differ(hashes[r.at], hashes[r.first]) | differ(hashes[r.at+1], hashes[r.first+1])
	}
	t.reset(others)
	kept = 0
	for _, r := range g.repeats {
		if hashes[r.at] != hashes[r.first] || hashes[r.at+1] != hashes[r.first+1] {
			r.first = t.first(join(hashes[r.at], hashes[r.at+1]), r.at)
		}
		g.repeats[kept] = r
		if r.first != r.at {
			kept++
		}
	}
	g.repeats = g.repeats[:kept]
}

// extend turns the repeats of (n−1)-grams into the repeats of n-grams.
func (g *gramFacts) extend(hashes []uint64, n int, t *table) {
	if i := len(g.repeats) - 1; i >= 0 && int(g.repeats[i].at)+n > len(hashes) {
		g.repeats = g.repeats[:i]
	}
	next, kept := hashes[n-1:], 0
	t.reset(len(g.repeats))
	for _, r := range g.repeats {
		// the next token differs from that at the first place, but may equal that at a later place
		if token := next[r.at]; token != next[r.first] {
			r.first = t.first(join(uint64(r.first)*mix1, token), r.at)
		}
		g.repeats[kept] = r
		if r.first != r.at {
			kept++
		}
	}
	g.repeats = g.repeats[:kept]
}

// differ returns 1 for different numbers and 0 for equal ones, without a branch.
func differ(a, b uint64) int { return int(((a ^ b) | -(a ^ b)) >> 63) }

func (w *tokenFacts) span(at uint32, n int) int { return int(w.chars[int(at)+n] - w.chars[at]) }

// best returns the characters of the most frequent n-gram; of the first one if several are equally frequent.
func (g *gramFacts) best(w *tokenFacts, n int) int {
	g.counts = slices.Grow(g.counts[:0], len(w.hashes))[:len(w.hashes)]
	clear(g.counts)
	at, most := uint32(0), uint32(0)
	for _, r := range g.repeats {
		g.counts[r.first]++
		if c := g.counts[r.first]; c > most || c == most && r.first < at {
			at, most = r.first, c
		}
	}
	return (w.span(at, n) + n - 1) * int(most+1)
}

// walk reads the text from the beginning. An n-gram that it has seen before counts, and the walk continues after it;
// n-grams that begin inside it are not seen.
func (g *gramFacts) walk(w *tokenFacts, n int) int {
	chars, next := 0, uint32(0)
	for _, r := range g.repeats {
		switch {
		case r.at < next:
		case g.passed[r.first] != uint8(n):
			chars += w.span(r.at, n)
			next = r.at + uint32(n)
			for i := r.at + 1; i < next; i++ {
				g.passed[i] = uint8(n)
			}
		default:
			g.passed[r.first] = 0
		}
	}
	return chars
}
