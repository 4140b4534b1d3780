package dataset

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"sort"
)

// Packing defines how documents become rows of T positions. A document is EOT and its tokens; the target of its last
// token is the EOT that ends it.
type Packing string

const (
	// Concat cuts the stream of all documents every T tokens: no position is wasted, but documents are cut at the end
	// of a row. No memory. The default, for validation also, so that its bits per byte stay comparable.
	Concat Packing = "concat"

	// BestFit cuts documents longer than a row into pieces of T tokens and a rest, and packs the rests by best-fit
	// decreasing (Ding et al. 2024, arXiv 2404.10830): from the longest to the shortest, each goes into the row where
	// it leaves the least space, or into a new one. No document is cut that fits in a row, and every token is a
	// target once per epoch. The rest of a row is padding with target Ignore, usually below 1 % of the positions.
	// Pieces in one row are unrelated: keep data.document_mask on. It takes O(n log₆₄ T) when the loader opens, using
	// only the document index; 12 bytes per piece and 4 bytes per row stay in memory. Not for documents much longer
	// than T, where concat is equivalent and needs no memory.
	BestFit Packing = "best_fit"

	// Pad gives each document its own row, cut at T; the rest of the row is padding. It is the baseline of packing:
	// with short documents most work is spent on padding, with long ones everything after T tokens is lost. 8 bytes
	// per document.
	Pad Packing = "pad"
)

// packing holds the pieces of the stream in each row. Pieces are numbered from the longest to the shortest, and
// equally long ones in the order of the stream.
type packing struct {
	kind    Packing
	context int
	rows    uint64
	trained uint64   // targets in all rows that are not ignored
	start   []uint64 // of each piece in the stream
	// [T+1] number of pieces longer than a length, which is also the number of the first piece of that length
	longer []uint64

	// the first piece of each row, and the piece after each piece in its row; nil if piece r is row r
	head, next []uint32
}

// noPiece ends the list of the pieces of a row.
const noPiece = math.MaxUint32

// docSpans calls f for each document of a stream, in order, as split.documents does.
type docSpans func(f func(start, end, prompt uint64)) error

// pack packs documents by BestFit or Pad. It reads them twice.
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
		return nil, fmt.Errorf("%d pieces of at most %d tokens are too many to pack (the limit is 2^32)\n"+
			"  try data.packing = concat", k.rows, context)
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

// pieces calls f, in the order of the stream, with the start and length of every piece that goes into a row, and the
// number of its targets that are not ignored.
func (d docSpans) pieces(kind Packing, context int, f func(start, n, counted uint64)) error {
	t := uint64(context)
	return d(func(start, end, prompt uint64) {
		for at := start; at < end; at += t {
			n := min(t, end-at)
			// Token i of the document is a target of this piece iff at+1 ≤ i ≤ at+n; tokens 1…prompt are ignored.
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
		top  = make([]uint32, k.context) // for each capacity: the last row that reached it
		down []uint32                    // for each row: the one that reached its capacity before it
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

// piece returns the start of a piece in the stream and its number of tokens.
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

// fingerprint returns a checksum of the packing.
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
