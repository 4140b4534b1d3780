package dedup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"sync"

	"anneal/internal/extsort"
)

// Near collects the band keys of documents and finds documents that agree in a band. Each band is sorted separately.
// Its 16-byte records (band key, document) go to disk if they do not fit in memory. So documents may come from any
// goroutine in any order, and bands are processed in parallel.
type Near struct{ bands []*extsort.Sorter }

// NewNear returns a Near that sorts band keys in about memory bytes, and the rest in files in dir.
func NewNear(m MinHash, memory int64, dir string) (*Near, error) {
	m = m.withDefaults()
	if err := m.check(); err != nil {
		return nil, err
	}
	n := &Near{}
	for range m.Bands {
		n.bands = append(n.bands, extsort.New(16, memory/int64(m.Bands), dir))
	}
	return n, nil
}

// Add adds the band keys of a document, made by a Signer of the same MinHash. Any goroutine may call it. The document
// with the smallest number is kept.
func (n *Near) Add(document uint64, keys []uint64) error {
	if len(keys) != 0 && len(keys) != len(n.bands) {
		return fmt.Errorf("%d band keys for %d bands", len(keys), len(n.bands))
	}
	var rec [16]byte
	binary.BigEndian.PutUint64(rec[8:], document)
	for i, k := range keys {
		binary.BigEndian.PutUint64(rec[:], k)
		if err := n.bands[i].Add(rec[:]); err != nil {
			return err
		}
	}
	return nil
}

// Spilled returns how many bytes went to disk.
func (n *Near) Spilled() (sum int64) {
	for _, s := range n.bands {
		sum += s.Spilled()
	}
	return sum
}

// Close removes the files.
func (n *Near) Close() (err error) {
	for _, s := range n.bands {
		err = errors.Join(err, s.Close())
	}
	return err
}

// Link pairs the first document of every bucket with each of the others, and adds the pairs to pairs: a star instead
// of all pairs, so that a bucket of n costs n − 1. No more documents may be added.
func (n *Near) Link(pairs *Pairs, threads int) error {
	errs := make([]error, len(n.bands))
	var wg sync.WaitGroup
	free := make(chan struct{}, max(threads, 1))
	for i, s := range n.bands {
		free <- struct{}{}
		wg.Go(func() {
			errs[i] = errors.Join(stars(s, pairs), s.Close())
			<-free
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func stars(band *extsort.Sorter, pairs *Pairs) error {
	var bucket, first, last uint64
	begun := false
	for rec, err := range band.Sorted() {
		if err != nil {
			return err
		}
		k, d := binary.BigEndian.Uint64(rec), binary.BigEndian.Uint64(rec[8:])
		if !begun || k != bucket {
			begun, bucket, first, last = true, k, d, d
			continue
		}
		if d != last { // the same document may have been added twice
			last = d
			if err := pairs.Add(first, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// Pair is two documents that may be duplicates, A before B.
type Pair struct{ A, B uint64 }

// Pairs collects pairs of documents, from any goroutine, in bounded memory.
type Pairs struct{ sorter *extsort.Sorter }

// NewPairs returns a Pairs that sorts in about memory bytes, and the rest in a file in dir.
func NewPairs(memory int64, dir string) *Pairs { return &Pairs{extsort.New(16, memory, dir)} }

// Add adds a pair, in either order.
func (p *Pairs) Add(a, b uint64) error {
	var rec [16]byte
	binary.BigEndian.PutUint64(rec[:], min(a, b))
	binary.BigEndian.PutUint64(rec[8:], max(a, b))
	return p.sorter.Add(rec[:])
}

// All yields the pairs in order, each once. It may be called again, but no more pairs may be added.
func (p *Pairs) All() iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		var last Pair
		for rec, err := range p.sorter.Sorted() {
			if err != nil {
				yield(Pair{}, err)
				return
			}
			next := Pair{binary.BigEndian.Uint64(rec), binary.BigEndian.Uint64(rec[8:])}
			if next != last && !yield(next, nil) {
				return
			}
			last = next
		}
	}
}

// Spilled returns how many bytes went to disk.
func (p *Pairs) Spilled() int64 { return p.sorter.Spilled() }

// Close removes the file.
func (p *Pairs) Close() error { return p.sorter.Close() }
