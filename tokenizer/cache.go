package tokenizer

import (
	"encoding/binary"
	"math/bits"
)

// shortWord is the longest pretoken, in bytes, that fits in a word.
const shortWord = 15

// word is a pretoken of up to 15 bytes: the bytes, little-endian, and its length in the top byte of hi.
type word struct{ lo, hi uint64 }

// wordMasks[n] keeps n bytes of the sixteen.
var wordMasks = func() (m [16]word) {
	for n := range m {
		m[n] = word{below(min(8*n, 64)), below(max(8*n-64, 0))}
	}
	return m
}()

// packWord packs text[start:end], at most 15 bytes.
func packWord(text []byte, start, end int) word {
	if start+16 > len(text) {
		var b [16]byte
		copy(b[:shortWord], text[start:end])
		text, start, end = b[:], 0, end-start
	}
	n := end - start
	m := &wordMasks[n&15]
	return word{
		binary.LittleEndian.Uint64(text[start:]) & m.lo,
		binary.LittleEndian.Uint64(text[start+8:])&m.hi | uint64(n)<<56,
	}
}

// appendTo appends the bytes of w.
func (w word) appendTo(dst []byte) []byte {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], w.lo)
	binary.LittleEndian.PutUint64(b[8:], w.hi)
	return append(dst, b[:w.hi>>56]...)
}

// hash mixes both halves in one multiplication.
func (w word) hash() uint64 {
	hi, lo := bits.Mul64(w.lo^0x9e3779b97f4a7c15, w.hi^0xd6e8feb86659fd93)
	return hi ^ lo
}

// entry is a pretoken with its tokens. The number of tokens, 1 to 4, is in the top four bits of hi, the length in the
// next four; an entry without tokens is free.
type entry struct {
	lo, hi uint64
	ids    [4]uint32
}

// word returns the pretoken of the entry.
func (e *entry) word() word { return word{e.lo, e.hi << 4 >> 4} }

// holds reports whether the entry is for w.
func (e *entry) holds(w word) bool { return e.lo == w.lo && (e.hi^w.hi)<<4 == 0 }

// wordCache caches the tokens of short pretokens, in lines of two entries: one cache line of the CPU. The first word
// of a line stays, because frequent words come early; the second place holds the latest word. The table grows up to a
// bound.
type wordCache struct {
	lines [][2]entry
	used  int // lines
	most  int // lines
}

const (
	minLines  = 1 << 8
	mainLines = 1 << 17 // 8 MiB
	lateLines = 1 << 16 // 4 MiB
)

func newWordCache(most int) wordCache {
	return wordCache{lines: make([][2]entry, minLines), most: most}
}

// line returns the line where w belongs.
func (c *wordCache) line(w word) *[2]entry { return &c.lines[w.hash()&uint64(len(c.lines)-1)] }

// find returns the entry of w, or nil.
func (c *wordCache) find(w word) *entry {
	line := c.line(w)
	if line[0].holds(w) {
		return &line[0]
	}
	if line[1].holds(w) {
		return &line[1]
	}
	return nil
}

// add stores e, whose word must be new, and returns the evicted entry, if any.
func (c *wordCache) add(e entry) (gone entry) {
	if 4*c.used > 3*len(c.lines) && len(c.lines) < c.most {
		c.grow()
	}
	return c.put(e)
}

func (c *wordCache) put(e entry) (gone entry) {
	line := c.line(e.word())
	if line[0].hi == 0 {
		c.used++
		line[0] = e
		return entry{}
	}
	gone, line[1] = line[1], e
	return gone
}

func (c *wordCache) grow() {
	old := c.lines
	c.lines, c.used = make([][2]entry, 2*len(old)), 0
	for i := range old {
		for _, e := range old[i] {
			if e.hi != 0 {
				c.put(e)
			}
		}
	}
}

// pieceCache caches the tokens of pretokens that do not fit in a wordCache. When full, it is cleared.
type pieceCache struct {
	pieces interner
	ids    []uint32
	ends   []uint32 // tokens of piece i: ids[ends[i-1]:ends[i]]
}

const (
	longestCached = 256     // bytes
	maxPieceBytes = 4 << 20 // of all pieces together
)

// find returns the tokens of piece, or nil.
func (c *pieceCache) find(piece []byte) []uint32 {
	i := c.pieces.find(piece)
	if i < 0 {
		return nil
	}
	start := uint32(0)
	if i > 0 {
		start = c.ends[i-1]
	}
	return c.ids[start:c.ends[i]]
}

// add stores piece, which must be new.
func (c *pieceCache) add(piece []byte, ids []uint32) {
	if len(c.pieces.arena)+len(piece) > maxPieceBytes {
		c.pieces.reset()
		c.ids, c.ends = c.ids[:0], c.ends[:0]
	}
	c.pieces.add(piece)
	c.ids = append(c.ids, ids...)
	c.ends = append(c.ends, uint32(len(c.ids)))
}
