package tasks

import (
	"cmp"
	"math/bits"
	"slices"
)

// A Place is where a sequence stands in a row: its input tokens, all but the last, from a position on.
type Place struct{ Sequence, At int }

// Pack distributes sequences over rows of length tokens, each whole in one row, by best-fit decreasing: the longest
// first, each into the fullest row that has room. None is longer than length+1. With alone each has a row of its own.
func Pack(list []Sequence, length int, alone bool) [][]Place {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(list[b].IDs), len(list[a].IDs)) })
	var rows [][]Place
	room := newRooms(length)
	for _, i := range order {
		n := len(list[i].IDs) - 1
		row, free, found := room.take(n)
		if !found || alone {
			row, free = len(rows), length
			rows = append(rows, nil)
		}
		rows[row] = append(rows[row], Place{i, length - free})
		if free > n && !alone {
			room.put(row, free-n)
		}
	}
	return rows
}

// rooms are rows by how many tokens more they have room for.
type rooms struct {
	rows [][]int
	some []uint64 // a bit for each number of tokens that a row has room for
}

func newRooms(length int) rooms { return rooms{make([][]int, length+1), make([]uint64, length/64+1)} }

func (r *rooms) put(row, free int) {
	r.rows[free] = append(r.rows[free], row)
	r.some[free/64] |= 1 << (free % 64)
}

// take removes a row with the least room of at least n.
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
