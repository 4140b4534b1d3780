// Package extsort sorts more records than fit in memory. Records are byte strings of equal length, ordered by
// bytes.Compare: numbers are stored big-endian. Equal records have equal bytes, so the sorted sequence depends only
// on the records, not on the memory limit or on their original order.
package extsort

import (
	"bufio"
	"bytes"
	"container/heap"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sync"
)

const (
	maxRuns   = 256      // merged at once
	minBuffer = 4 << 10  // bytes to read a run with
	maxBuffer = 1 << 20  //
	minMemory = 64 << 10 // minimum of a Sorter's memory, bytes
)

// Sorter accepts records and returns them in order. Add may be called from any goroutine.
type Sorter struct {
	mu     sync.Mutex
	size   int
	limit  int // bytes of records to hold
	dir    string
	buf    []byte
	runs   []run
	file   *os.File // holds all runs; nil until the first spill
	end    int64    // of the file
	sorted bool
	err    error
}

// run is a sorted part of the file.
type run struct{ from, to int64 }

// New returns a Sorter of records of size bytes. It holds about memory bytes of them (at least 64 KiB), and writes
// the others to a file in dir (the system's directory for temporary files if empty), which Close removes.
func New(size int, memory int64, dir string) *Sorter {
	return &Sorter{size: size, limit: int(max(memory, minMemory)) / size * size, dir: dir}
}

// Add adds the concatenated records in rec. Disk errors persist.
func (s *Sorter) Add(rec []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sorted || len(rec)%s.size != 0 {
		panic("extsort: Add after Sorted, or with part of a record")
	}
	for len(rec) > 0 && s.err == nil {
		if len(s.buf) >= s.limit {
			s.err = s.spill()
			continue
		}
		n := min(len(rec), s.limit-len(s.buf))
		s.grow(n)
		s.buf = append(s.buf, rec[:n]...)
		rec = rec[n:]
	}
	return s.err
}

// grow makes room for n more bytes, by doubling up to the limit.
func (s *Sorter) grow(n int) {
	if need := len(s.buf) + n; need > cap(s.buf) {
		bigger := make([]byte, len(s.buf), min(s.limit, max(2*cap(s.buf), need, minBuffer)))
		copy(bigger, s.buf)
		s.buf = bigger
	}
}

// Spilled returns the number of bytes written to disk.
func (s *Sorter) Spilled() int64 { return s.end }

// spill writes the held records as a run.
func (s *Sorter) spill() error {
	if err := s.open(); err != nil {
		return err
	}
	sortRecords(s.buf, s.size)
	if _, err := s.file.WriteAt(s.buf, s.end); err != nil {
		return fmt.Errorf("sorting on disk: %w\n"+
			"  free some space, raise the memory limit, or choose another directory for temporary files", err)
	}
	s.runs = append(s.runs, run{s.end, s.end + int64(len(s.buf))})
	s.end += int64(len(s.buf))
	s.buf = s.buf[:0]
	return nil
}

func (s *Sorter) open() (err error) {
	if s.file == nil {
		s.file, err = os.CreateTemp(s.dir, "anneal-sort-*")
	}
	return err
}

// Sorted ends the input and yields the records in order; each is valid until the next.
func (s *Sorter) Sorted() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := s.finish(); err != nil {
			yield(nil, err)
			return
		}
		if len(s.runs) == 0 {
			for i := 0; i < len(s.buf); i += s.size {
				if !yield(s.buf[i:i+s.size], nil) {
					return
				}
			}
			return
		}
		m, err := s.merge(s.runs)
		for ; err == nil && len(m.runs) > 0; err = m.next() {
			if !yield(m.runs[0].head, nil) {
				return
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// finish sorts the held records, and merges runs until all can be read at once.
func (s *Sorter) finish() error {
	if s.err != nil || s.sorted {
		return s.err
	}
	s.sorted = true
	if len(s.runs) == 0 {
		sortRecords(s.buf, s.size)
		return nil
	}
	if len(s.buf) > 0 {
		s.err = s.spill()
	}
	s.buf = nil
	most := max(2, min(maxRuns, s.limit/minBuffer))
	for s.err == nil && len(s.runs) > most {
		s.err = s.shorten(most)
	}
	return s.err
}

// shorten merges the first runs into one, at the end of the file.
func (s *Sorter) shorten(most int) error {
	m, err := s.merge(s.runs[:most])
	if err != nil {
		return err
	}
	from := s.end
	w := bufio.NewWriterSize(io.NewOffsetWriter(s.file, from), maxBuffer/4)
	for ; err == nil && len(m.runs) > 0; err = m.next() {
		if _, err := w.Write(m.runs[0].head); err != nil {
			return fmt.Errorf("sorting on disk: %w", err)
		}
		s.end += int64(s.size)
	}
	if err := errors.Join(err, w.Flush()); err != nil {
		return fmt.Errorf("sorting on disk: %w", err)
	}
	s.runs = append(s.runs[most:], run{from, s.end})
	return nil
}

// Close frees memory and disk.
func (s *Sorter) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf, s.runs, s.sorted = nil, nil, true
	if s.file == nil {
		return nil
	}
	name := s.file.Name()
	err := errors.Join(s.file.Close(), os.Remove(name))
	s.file = nil
	return err
}

// merger is a heap of runs by their first record.
type merger struct{ runs []*reader }

type reader struct {
	in   *bufio.Reader
	head []byte
}

func (m *merger) Len() int           { return len(m.runs) }
func (m *merger) Less(i, j int) bool { return bytes.Compare(m.runs[i].head, m.runs[j].head) < 0 }
func (m *merger) Swap(i, j int)      { m.runs[i], m.runs[j] = m.runs[j], m.runs[i] }
func (m *merger) Push(any)           { panic("extsort: runs do not grow") }
func (m *merger) Pop() any {
	m.runs = m.runs[:len(m.runs)-1]
	return nil
}

func (s *Sorter) merge(runs []run) (*merger, error) {
	m := &merger{}
	buffer := min(maxBuffer, max(minBuffer, s.limit/len(runs)))
	for _, r := range runs {
		in := &reader{bufio.NewReaderSize(io.NewSectionReader(s.file, r.from, r.to-r.from), buffer),
			make([]byte, s.size)}
		if _, err := io.ReadFull(in.in, in.head); err != nil {
			return nil, fmt.Errorf("cannot read back sorted records: %w", err)
		}
		m.runs = append(m.runs, in)
	}
	heap.Init(m)
	return m, nil
}

// next advances past the smallest record.
func (m *merger) next() error {
	first := m.runs[0]
	switch _, err := io.ReadFull(first.in, first.head); err {
	case nil:
		heap.Fix(m, 0)
	case io.EOF:
		heap.Pop(m)
	default:
		return fmt.Errorf("cannot read back sorted records: %w", err)
	}
	return nil
}
