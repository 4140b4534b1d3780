package tasks

import (
	"cmp"
	"math/bits"
	"slices"
)

// A Place is the position of a sequence's input tokens, all but the last, in a row. The first Shared of them are those
// of another sequence, which begins at Base; the others begin at At.
type Place struct{ Sequence, At, Base, Shared int }

// Packing says how sequences are packed into rows.
type Packing struct {
	Length int  // tokens in a row; no sequence is longer than Length+1
	Alone  bool // a row holds only one sequence and those that share its beginning
	Share  bool // a row holds a shared beginning once
}

// leastShared is the length of the shortest beginning that is shared. Sequences that share need attention calls of
// their own, which cost more than a shorter beginning saves.
const leastShared = 16

// Rows packs sequences into rows by best-fit decreasing: the longest first, each into the fullest row that has room. A
// sequence lies whole in one row, together with the sequences that share its beginning.
func (p Packing) Rows(list []Sequence) [][]Place {
	bunches := p.bunches(list)
	slices.SortStableFunc(bunches, func(a, b bunch) int { return cmp.Compare(b.tokens, a.tokens) })
	var rows [][]Place
	room := newRooms(p.Length)
	for _, b := range bunches {
		row, free, found := room.take(b.tokens)
		if !found || p.Alone {
			row, free = len(rows), p.Length
			rows = append(rows, nil)
		}
		base := p.Length - free
		for _, place := range b.places {
			place.At, place.Base = place.At+base, base
			rows[row] = append(rows[row], place)
		}
		if free > b.tokens && !p.Alone {
			room.put(row, free-b.tokens)
		}
	}
	return rows
}

// A bunch holds neighbours in a list that share the beginning of the first. Their places count from the start of the
// bunch.
type bunch struct {
	places []Place
	tokens int
}

// bunches returns the sequences of a list in order, with neighbours in one bunch where that saves tokens.
func (p Packing) bunches(list []Sequence) (bunches []bunch) {
	shared := 0 // tokens of the last bunch that its next sequence may share
	for i, s := range list {
		n := len(s.IDs) - 1
		shared = min(shared, s.Shared)
		if i > 0 && p.Share && shared >= leastShared {
			if b := &bunches[len(bunches)-1]; b.tokens+n-shared <= p.Length {
				b.places = append(b.places, Place{Sequence: i, At: b.tokens, Shared: shared})
				b.tokens += n - shared
				continue
			}
		}
		bunches = append(bunches, bunch{[]Place{{Sequence: i}}, n})
		shared = n
	}
	return bunches
}

// rooms holds rows by the number of tokens that still fit.
type rooms struct {
	rows [][]int
	some []uint64 // bit n is set if a row has room for n tokens
}

func newRooms(length int) rooms { return rooms{make([][]int, length+1), make([]uint64, length/64+1)} }

func (r *rooms) put(row, free int) {
	r.rows[free] = append(r.rows[free], row)
	r.some[free/64] |= 1 << (free % 64)
}

// take removes and returns a row with the least room that is at least n.
func (r *rooms) take(n int) (row, free int, found bool) {
	word := n / 64
	set := r.some[word] &^ (1<<(n%64) - 1)
	for set == 0 {
		if word++; word == len(r.some) {
			return 0, 0, false
		}
		set = r.some[word]
	}
	free = word*64 + bits.TrailingZeros64(set)
	list := r.rows[free]
	row, r.rows[free] = list[len(list)-1], list[:len(list)-1]
	if len(list) == 1 {
		r.some[free/64] &^= 1 << (free % 64)
	}
	return row, free, true
}
