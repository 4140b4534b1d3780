package dataset

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"sort"
)

// Packing is how documents become rows of T positions. A document is EOT and its tokens; the target of its last token is
// the EOT that ends it.
type Packing string

const (
	// Concat cuts the stream of all documents every T tokens: no position is lost, and nearly every document that meets
	// the end of a row is cut there. No memory. The default, and what validation always uses, whatever training does, so that
	// its bits per byte stay comparable.
	Concat Packing = "concat"

	// BestFit cuts what is longer than a row into pieces of T tokens and a rest, and fills rows with the rests by best-fit
	// decreasing (Ding et al. 2024, arXiv 2404.10830): from the longest to the shortest, each goes into the row that it leaves
	// the least room in, or opens one. No document is cut that a row could hold, and every token is a target once an epoch; what
	// stays free at the end of a row is padding with target Ignore, most often below 1 % of the positions. Pieces of one row
	// do not belong together: keep data.document_mask on. O(n log₆₄ T) when the loader opens, from the document index alone;
	// 12 bytes a piece and 4 bytes a row stay in memory. Not for documents that are much longer than T: concat does the same
	// there, without memory.
	BestFit Packing = "best_fit"

	// Pad gives each document a row of its own, cut at T; the rest of the row is padding. It is what packing is measured
	// against: of short documents most of the work is spent on padding, of long ones all after T tokens is lost. 8 bytes a
	// document.
	Pad Packing = "pad"
)

// packing says which pieces of the stream stand in each row. Pieces are numbered from the longest to the shortest, and
// equally long ones in the order of the stream.
type packing struct {
	kind    Packing
	context int
	rows    uint64
	trained uint64   // targets that count, in all rows
	start   []uint64 // of each piece in the stream
	longer  []uint64 // [T+1] how many pieces are longer than a length; that is also the number of the first of this length

	head, next []uint32 // the first piece of each row, and the one that follows a piece in its row; nil: piece r is row r
}

// noPiece ends the list of the pieces of a row.
const noPiece = math.MaxUint32

// docSpans calls f for each document of a stream, in order, as split.documents does.
type docSpans func(f func(start, end, prompt uint64)) error

// pack packs documents by BestFit or Pad. It goes through them twice.
func (d docSpans) pack(kind Packing, context int) (*packing, error) {
	k := &packing{kind: kind, context: context}
	pieces := make([]uint64, context+1) // of each length
	err := d.pieces(kind, context, func(start, n, counted uint64) {
		pieces[n]++
		k.trained += counted
	})
	if err != nil {
		return nil, err
	}
	k.longer = make([]uint64, context+1)
	for n := context; n > 0; n-- {
		k.longer[n-1] = k.longer[n] + pieces[n]
	}
	if k.rows = k.longer[0]; k.rows >= noPiece {
		return nil, fmt.Errorf("%d pieces of at most %d tokens are too many to pack (the limit is 2^32)\n  try data.packing = concat", k.rows, context)
	}
	k.start = make([]uint64, k.rows)
	at := slices.Clone(k.longer)
	err = d.pieces(kind, context, func(start, n, counted uint64) {
		k.start[at[n]] = start
		at[n]++
	})
	if err == nil && kind == BestFit {
		k.bestFit()
	}
	return k, err
}

// pieces calls f with the start in the stream and the length of every piece that is to stand in a row, and how many of its
// targets count, in the order of the stream.
func (d docSpans) pieces(kind Packing, context int, f func(start, n, counted uint64)) error {
	t := uint64(context)
	return d(func(start, end, prompt uint64) {
		for at := start; at < end; at += t {
			n := min(t, end-at)
			// Token i of the document is a target iff it stands from at+1 to at+n; tokens 1…prompt do not count.
			ignored := min(max(start+prompt, at), at+n) - at
			f(at, n, n-ignored)
			if kind == Pad {
				break
			}
		}
	})
}

// bestFit distributes the pieces over rows.
func (k *packing) bestFit() {
	k.next = make([]uint32, len(k.start))
	var (
		room = newCapacities(k.context)
		top  = make([]uint32, k.context) // of each capacity: the row that came to it last
		down []uint32                    // of each row: the one that came to its capacity before it
	)
	for i, length := uint64(0), k.context; i < uint64(len(k.start)); i++ {
		for i == k.longer[length-1] {
			length--
		}
		free, found := room.from(length)
		row := uint32(len(k.head))
		if found {
			row = top[free]
			if top[free] = down[row]; down[row] == noPiece {
				room.remove(free)
			}
			k.next[i] = k.head[row]
			k.head[row] = uint32(i)
		} else {
			free = k.context
			k.head, down = append(k.head, uint32(i)), append(down, noPiece)
			k.next[i] = noPiece
		}
		free -= length
		if free == 0 {
			continue
		}
		down[row] = noPiece
		if room.has(free) {
			down[row] = top[free]
		}
		top[free] = row
		room.add(free)
	}
	k.head = slices.Clip(k.head)
	k.rows = uint64(len(k.head))
}

// first returns the first piece of a row.
func (k *packing) first(row uint64) uint32 {
	if k.head == nil {
		return uint32(row)
	}
	return k.head[row]
}

// after returns the piece that follows another one in its row, or noPiece.
func (k *packing) after(piece uint32) uint32 {
	if k.next == nil {
		return noPiece
	}
	return k.next[piece]
}

// piece returns where in the stream a piece begins and how many tokens it has.
func (k *packing) piece(i uint32) (start uint64, n int) {
	return k.start[i], sort.Search(k.context, func(n int) bool { return k.longer[n] <= uint64(i) })
}

// rowOf returns the row of each piece.
func (k *packing) rowOf() []uint32 {
	rows := make([]uint32, len(k.start))
	for row := range k.rows {
		for i := k.first(row); i != noPiece; i = k.after(i) {
			rows[i] = uint32(row)
		}
	}
	return rows
}

// fingerprint is a checksum of what stands where.
func (k *packing) fingerprint() uint32 {
	sum := crc32.New(castagnoli)
	buf := make([]byte, 0, 1<<12)
	for _, list := range [][]uint64{k.longer, k.start} {
		for chunk := range slices.Chunk(list, 512) {
			buf = buf[:0]
			for _, v := range chunk {
				buf = binary.LittleEndian.AppendUint64(buf, v)
			}
			sum.Write(buf)
		}
	}
	for _, list := range [][]uint32{k.head, k.next} {
		for chunk := range slices.Chunk(list, 1024) {
			buf = buf[:0]
			for _, v := range chunk {
				buf = binary.LittleEndian.AppendUint32(buf, v)
			}
			sum.Write(buf)
		}
	}
	return sum.Sum32()
}
