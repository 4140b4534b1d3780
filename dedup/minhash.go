package dedup

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/zeebo/xxh3"
)

// MinHash finds near-duplicates by locality-sensitive hashing (Broder 1997; Indyk and Motwani 1998). A document is the
// set of its n-grams of normalised words. For each of Bands·Rows hash functions h_i(x) = a_i·x + b_i mod 2³², a_i odd,
// the minimum over the set is taken; two documents agree in one minimum with probability s, their Jaccard similarity.
// Documents are candidates when they agree in all rows of at least one band, which happens with probability
//
//	1 − (1 − s^Rows)^Bands: for 14 × 8 0.05 at s = 0.5, 0.56 at 0.7, 0.92 at 0.8, 0.9996 at 0.9
//
// 14 × 8 over 5-grams is what FineWeb and OLMo use, and the default. Cost: 16 bytes of sorting per band and document.
// Not for passages shared by otherwise different documents (see Bloom and Units), nor for paraphrase.
type MinHash struct {
	Words int // in an n-gram; default 5. A document of fewer words is one n-gram; without words it is never a duplicate
	Bands int // default 14
	Rows  int // default 8
}

func (m MinHash) withDefaults() MinHash {
	if m.Words == 0 {
		m.Words = 5
	}
	if m.Bands == 0 {
		m.Bands = 14
	}
	if m.Rows == 0 {
		m.Rows = 8
	}
	return m
}

func (m MinHash) check() error {
	if m.Words < 1 || m.Bands < 1 || m.Rows < 1 || m.Bands > 1024 || m.Rows > 1024 {
		return fmt.Errorf("MinHash over %d words in %d bands × %d rows: each must be positive, "+
			"bands and rows at most 1024\n  try 5 words, 14 bands, 8 rows", m.Words, m.Bands, m.Rows)
	}
	return nil
}

// Signer computes band keys. It is for one goroutine; its memory grows to about six times the longest document.
type Signer struct {
	cfg    MinHash
	words  Words
	a, b   [][lanes]uint32
	minima [][lanes]uint32
	grams  []uint32
	keys   []uint64
}

// NewSigner returns a Signer for m, whose zero fields take the defaults.
func (m MinHash) NewSigner() (*Signer, error) {
	m = m.withDefaults()
	if err := m.check(); err != nil {
		return nil, err
	}
	calls := (m.Bands*m.Rows + lanes - 1) / lanes
	s := &Signer{
		cfg: m, a: make([][lanes]uint32, calls), b: make([][lanes]uint32, calls), minima: make([][lanes]uint32, calls),
		keys: make([]uint64, m.Bands),
	}
	for i := range calls * lanes {
		h := fold64(k1, uint64(i)*k1+k2)
		s.a[i/lanes][i%lanes] = uint32(h) | 1
		s.b[i/lanes][i%lanes] = uint32(h >> 32)
	}
	return s, nil
}

// Grams returns the n-grams of text as 32-bit hashes, in order, with repetitions, valid until the next call.
func (s *Signer) Grams(text []byte) []uint32 {
	grams := s.grams[:0]
	for _, g := range NGrams(s.words.Hashes(text), s.cfg.Words) {
		grams = append(grams, uint32(g>>32))
	}
	s.grams = grams
	return grams
}

// Keys returns the key of each band, valid until the next call; none for a text without words.
func (s *Signer) Keys(text []byte) []uint64 {
	grams := s.Grams(text)
	if len(grams) == 0 {
		return nil
	}
	return s.bands(grams)
}

func (s *Signer) bands(grams []uint32) []uint64 {
	for i := range s.minima {
		for j := range s.minima[i] {
			s.minima[i][j] = ^uint32(0)
		}
		minHash(&s.minima[i], &s.a[i], &s.b[i], grams)
	}
	row := make([]byte, 0, 64)
	for band := range s.keys {
		row = row[:0]
		for i := band * s.cfg.Rows; i < (band+1)*s.cfg.Rows; i++ {
			row = binary.LittleEndian.AppendUint32(row, s.minima[i/lanes][i%lanes])
		}
		s.keys[band] = xxh3.HashSeed(row, uint64(band))
	}
	return s.keys
}

// setOf sorts grams and removes repetitions, in place.
func setOf(grams []uint32) []uint32 {
	slices.Sort(grams)
	return slices.Compact(grams)
}

// jaccard returns |a ∩ b| / |a ∪ b| of two sets, each sorted and without repetitions; 0 if both are empty.
func jaccard(a, b []uint32) float64 {
	both, i, j := 0, 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			both, i, j = both+1, i+1, j+1
		}
	}
	return float64(both) / float64(max(len(a)+len(b)-both, 1))
}
