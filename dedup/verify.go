package dedup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"sync"
)

// Verifier computes the exact Jaccard similarity of candidates. It handles only documents that are in a pair. Their
// sets of n-grams go to a file, 4 bytes per n-gram; two sets are read at a time. 20 bytes per document stay in memory.
type Verifier struct {
	documents []uint64 // sorted
	mu        sync.Mutex
	file      *os.File
	end       int64
	at        []int64
	n         []int32
}

// NewVerifier makes a verifier of these pairs, with its file in dir.
func NewVerifier(pairs iter.Seq2[Pair, error], dir string) (*Verifier, error) {
	v := &Verifier{}
	for p, err := range pairs {
		if err != nil {
			return nil, err
		}
		v.documents = appendUnique(v.documents, p.A, p.B)
	}
	v.documents = unique(v.documents)
	v.at, v.n = make([]int64, len(v.documents)), make([]int32, len(v.documents))
	var err error
	v.file, err = os.CreateTemp(dir, "anneal-sets-*")
	return v, err
}

// Add stores the sorted n-grams of a document. It ignores documents that are in no pair. Any goroutine may call it.
func (v *Verifier) Add(document uint64, text []byte, s *Signer) error {
	i, ok := slices.BinarySearch(v.documents, document)
	if !ok {
		return nil
	}
	set := setOf(s.Grams(text))
	b := make([]byte, 0, 4*len(set))
	for _, x := range set {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.at[i], v.n[i] = v.end, int32(len(set))
	_, err := v.file.WriteAt(b, v.end)
	v.end += int64(len(b))
	return err
}

// Confirm yields the pairs whose similarity is at least the threshold. No more documents may be added.
func (v *Verifier) Confirm(pairs iter.Seq2[Pair, error], threshold float64) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		var a, b []uint32
		last := -1
		for p, err := range pairs {
			if err == nil {
				if i, _ := slices.BinarySearch(v.documents, p.A); i != last {
					a, err = v.set(a, i)
					last = i
				}
			}
			if err == nil {
				i, _ := slices.BinarySearch(v.documents, p.B)
				b, err = v.set(b, i)
			}
			if err != nil {
				yield(Pair{}, err)
				return
			}
			if jaccard(a, b) >= threshold && !yield(p, nil) {
				return
			}
		}
	}
}

func (v *Verifier) set(dst []uint32, i int) ([]uint32, error) {
	b := make([]byte, 4*v.n[i])
	if _, err := io.ReadFull(io.NewSectionReader(v.file, v.at[i], int64(len(b))), b); err != nil {
		return nil, fmt.Errorf("reading n-grams back: %w", err)
	}
	dst = dst[:0]
	for ; len(b) > 0; b = b[4:] {
		dst = append(dst, binary.LittleEndian.Uint32(b))
	}
	return dst, nil
}

// Close removes the file.
func (v *Verifier) Close() error { return errors.Join(v.file.Close(), os.Remove(v.file.Name())) }
