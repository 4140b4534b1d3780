package dedup

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/zeebo/xxh3"

	"anneal/internal/extsort"
)

// Unit is a part of a text that is compared as a whole.
type Unit int

// The units. Documents are compared by their bytes, ignoring surrounding blanks and the length of runs of blanks.
// Paragraphs, which end at blank lines, and lines are compared by their normalised words (see Words), as in CCNet. A
// paragraph or line of fewer than minWords words is never a duplicate, so that braces and blank lines are kept.
const (
	Document Unit = iota
	Paragraph
	Line
)

func (u Unit) String() string { return [...]string{"document", "paragraph", "line"}[u] }

// Exact finds repeated units by a 128-bit hash (xxh3). The first in the order of documents is kept. The hashes are
// sorted, on disk if they do not fit in memory, so documents may come from any goroutine in any order, and the result
// depends only on the documents. Sorting takes 28 bytes per unit.
type Exact struct {
	unit     Unit
	minWords int
	hashes   *extsort.Sorter // hash 16, document 8, ordinal of the unit in it 4
	repeated *extsort.Sorter // document 8, ordinal 4, document of the first 8
}

// NewExact returns an Exact that sorts hashes in about memory bytes, and the rest in files in dir. Paragraphs and
// lines of fewer than minWords words are always kept.
func NewExact(unit Unit, minWords int, memory int64, dir string) *Exact {
	return &Exact{unit, max(minWords, 1), extsort.New(28, memory*3/4, dir), extsort.New(20, memory/4, dir)}
}

// Close removes the files.
func (e *Exact) Close() error {
	e.hashes.Close()
	return e.repeated.Close()
}

// Spilled returns how many bytes went to disk.
func (e *Exact) Spilled() int64 { return e.hashes.Spilled() + e.repeated.Spilled() }

// ExactHasher hashes units of documents for an Exact. It is for one goroutine.
type ExactHasher struct {
	e      *Exact
	words  Words
	normal []byte
	recs   []byte
}

// NewHasher returns a hasher for one goroutine.
func (e *Exact) NewHasher() *ExactHasher { return &ExactHasher{e: e} }

// Add adds the units of a document.
func (h *ExactHasher) Add(document uint64, text []byte) error {
	h.recs = h.recs[:0]
	i := uint32(0)
	for part := range Parts(text, h.e.unit) {
		if sum, ok := h.hash(part); ok {
			b := sum.Bytes()
			h.recs = append(h.recs, b[:]...)
			h.recs = binary.BigEndian.AppendUint64(h.recs, document)
			h.recs = binary.BigEndian.AppendUint32(h.recs, i)
		}
		i++
	}
	return h.e.hashes.Add(h.recs)
}

func (h *ExactHasher) hash(part []byte) (xxh3.Uint128, bool) {
	if h.e.unit == Document {
		h.normal = squeeze(h.normal[:0], part)
		return xxh3.Hash128(h.normal), len(h.normal) > 0
	}
	h.normal = h.words.Normal(h.normal[:0], part)
	enough := len(h.normal) > 0 && bytes.Count(h.normal, []byte(" "))+1 >= h.e.minWords
	return xxh3.Hash128(h.normal), enough
}

// squeeze appends text with each run of blanks and line ends as one blank, and none around it.
func squeeze(dst, text []byte) []byte {
	for f := range bytes.FieldsSeq(text) {
		if len(dst) > 0 {
			dst = append(dst, ' ')
		}
		dst = append(dst, f...)
	}
	return dst
}

// Parts yields the units of text; together they are the whole text. A line includes its line end, and a paragraph the
// blank lines that follow it.
func Parts(text []byte, unit Unit) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if unit == Document {
			yield(text)
			return
		}
		start, blank := 0, false // blank: the line before was
		for at := 0; at < len(text); {
			end := len(text)
			if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
				end = at + n + 1
			}
			empty := len(bytes.TrimSpace(text[at:end])) == 0
			if unit == Line || blank && !empty {
				if at > start && !yield(text[start:at]) {
					return
				}
				start = at
			}
			blank, at = empty, end
		}
		if start < len(text) {
			yield(text[start:])
		}
	}
}

// Repeat is a unit that occurred before.
type Repeat struct {
	Document uint64
	Ordinal  uint32 // of the unit in the document, from 0
	First    uint64 // document in which it occurred first
}

// Repeats returns the repeated units in the order of documents. No more documents may be added.
func (e *Exact) Repeats() (iter.Seq2[Repeat, error], error) {
	var hash [16]byte
	var first uint64
	any := false
	var out [20]byte
	for rec, err := range e.hashes.Sorted() {
		if err != nil {
			return nil, err
		}
		if !any || !bytes.Equal(hash[:], rec[:16]) {
			any = true
			copy(hash[:], rec)
			first = binary.BigEndian.Uint64(rec[16:])
			continue
		}
		copy(out[:], rec[16:])
		binary.BigEndian.PutUint64(out[12:], first)
		if err := e.repeated.Add(out[:]); err != nil {
			return nil, err
		}
	}
	if err := e.hashes.Close(); err != nil {
		return nil, fmt.Errorf("removing temporary files: %w", err)
	}
	return func(yield func(Repeat, error) bool) {
		for rec, err := range e.repeated.Sorted() {
			if err != nil {
				yield(Repeat{}, err)
				return
			}
			if !yield(Repeat{binary.BigEndian.Uint64(rec), binary.BigEndian.Uint32(rec[8:]),
				binary.BigEndian.Uint64(rec[12:])}, nil) {
				return
			}
		}
	}, nil
}
