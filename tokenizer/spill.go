package tokenizer

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/bits"
	"os"
	"slices"
	"sync"
)

// Counts that do not fit in memory go to a file as sorted runs: records of a pretoken and its count (both as varints,
// the pretoken's length before its bytes) in the order of bytes.Compare. Merging the runs, and summing equal
// pretokens, gives one list that depends only on the text, not on when or by which worker counts were written.

// runFile holds sorted runs. The zero value is usable; Close removes the file.
type runFile struct {
	mu   sync.Mutex
	dir  string // "" selects the system's directory for temporary files
	file *os.File
	end  int64
	runs []run
}

// run is a part of the file.
type run struct{ from, to int64 }

const (
	minRunBuffer = 4 << 10 // buffer per run, bytes
	maxRunBuffer = 256 << 10
	maxRuns      = 256 // merged at once
)

// add writes c as a run, and empties it.
func (r *runFile) add(c *wordCounts) error {
	order := c.sort()
	r.mu.Lock()
	defer r.mu.Unlock()
	w, err := r.writer()
	if err != nil {
		return err
	}
	short, buf := c.slots[:c.used], make([]byte, 0, shortWord)
	for len(short) > 0 || len(order) > 0 {
		if len(short) > 0 {
			buf = short[0].appendTo(buf[:0])
		}
		if len(order) == 0 || len(short) > 0 && bytes.Compare(buf, c.long.at(int(order[0]))) < 0 {
			w.record(buf, short[0].n)
			short = short[1:]
		} else {
			w.record(c.long.at(int(order[0])), c.longN[order[0]])
			order = order[1:]
		}
	}
	c.reset()
	return w.close()
}

// addAll writes each of parts as a run, and frees it.
func (r *runFile) addAll(parts []*wordCounts) error {
	errs := make([]error, len(parts))
	var workers sync.WaitGroup
	for i, c := range parts {
		workers.Go(func() {
			errs[i] = r.add(c)
			c.slots = nil
		})
	}
	workers.Wait()
	return errors.Join(errs...)
}

// sort moves the short pretokens, in order, to the start of the slots, which are no longer a hash table. It returns
// the order of the long ones.
func (c *wordCounts) sort() (long []uint32) {
	n := 0
	for _, s := range c.slots {
		if s.hi != 0 {
			c.slots[n] = s
			n++
		}
	}
	slices.SortFunc(c.slots[:n], func(a, b countSlot) int { return a.compare(b.word) })
	long = make([]uint32, len(c.longN))
	for i := range long {
		long[i] = uint32(i)
	}
	slices.SortFunc(long, func(a, b uint32) int { return bytes.Compare(c.long.at(int(a)), c.long.at(int(b))) })
	return long
}

// compare orders words like bytes.Compare orders their bytes.
func (w word) compare(o word) int {
	return cmp.Or(
		cmp.Compare(bits.ReverseBytes64(w.lo), bits.ReverseBytes64(o.lo)),
		cmp.Compare(bits.ReverseBytes64(w.hi<<8), bits.ReverseBytes64(o.hi<<8)),
		cmp.Compare(w.hi>>56, o.hi>>56))
}

// runWriter writes a run at the end of the file.
type runWriter struct {
	to   *runFile
	w    *bufio.Writer
	size int64
	buf  []byte
	err  error
}

func (r *runFile) writer() (*runWriter, error) {
	if r.file == nil {
		f, err := os.CreateTemp(r.dir, "anneal-words-*")
		if err != nil {
			return nil, fmt.Errorf("cannot create a temporary file for counts that exceed the memory limit: %w", err)
		}
		r.file = f
		_ = os.Remove(f.Name()) // if the system allows it, not even a kill leaves the file behind
	}
	return &runWriter{to: r, w: bufio.NewWriterSize(io.NewOffsetWriter(r.file, r.end), maxRunBuffer/4)}, nil
}

// record writes a pretoken and its count.
func (w *runWriter) record(piece []byte, n int64) {
	w.buf = binary.AppendUvarint(w.buf[:0], uint64(len(piece)))
	w.buf = append(w.buf, piece...)
	w.buf = binary.AppendUvarint(w.buf, uint64(n))
	k, err := w.w.Write(w.buf)
	w.size += int64(k)
	w.err = err // bufio keeps the first error
}

func (w *runWriter) close() error {
	if err := errors.Join(w.err, w.w.Flush()); err != nil {
		return fmt.Errorf("cannot write counts of pretokens: %w\n"+
			"  free some space, raise the memory limit, or choose another directory for temporary files", err)
	}
	w.to.runs = append(w.to.runs, run{w.to.end, w.to.end + w.size})
	w.to.end += w.size
	return nil
}

// merge merges all runs into one, with about memory bytes of buffers, and calls see for each of its records.
func (r *runFile) merge(memory int64, see func(piece []byte, n int64) error) error {
	if len(r.runs) == 1 {
		return r.read(r.runs, memory, see)
	}
	most := int(max(2, min(maxRuns, memory/minRunBuffer)))
	for {
		n := min(len(r.runs), most)
		last := n == len(r.runs)
		w, err := r.writer()
		if err != nil {
			return err
		}
		err = r.read(r.runs[:n], memory, func(piece []byte, n int64) error {
			w.record(piece, n)
			if last {
				return see(piece, n)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := w.close(); err != nil {
			return err
		}
		r.runs = slices.Clone(r.runs[n:])
		if last {
			return nil
		}
	}
}

// read calls see for each pretoken of some runs, in order and with the sum of its counts. piece is valid until the
// next call.
func (r *runFile) read(runs []run, memory int64, see func(piece []byte, n int64) error) error {
	var h runHeap
	buffer := int(max(minRunBuffer, min(maxRunBuffer, memory/int64(max(len(runs), 1)))))
	for _, run := range runs {
		in := &runReader{in: bufio.NewReaderSize(io.NewSectionReader(r.file, run.from, run.to-run.from), buffer)}
		if more, err := in.next(); err != nil {
			return err
		} else if more {
			h = append(h, in)
		}
	}
	heap.Init(&h)
	var piece []byte
	for len(h) > 0 {
		piece = append(piece[:0], h[0].piece...)
		n := int64(0)
		for len(h) > 0 && bytes.Equal(h[0].piece, piece) {
			n += h[0].n
			more, err := h[0].next()
			if err != nil {
				return err
			}
			if more {
				heap.Fix(&h, 0)
			} else {
				heap.Pop(&h)
			}
		}
		if err := see(piece, n); err != nil {
			return err
		}
	}
	return nil
}

// Close deletes the file.
func (r *runFile) Close() error {
	if r.file == nil {
		return nil
	}
	name := r.file.Name()
	err := r.file.Close()
	if gone := os.Remove(name); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	r.file, r.runs = nil, nil
	return err
}

// runReader reads one run.
type runReader struct {
	in    *bufio.Reader
	piece []byte
	n     int64
}

// next reads a record; it returns false at the end.
func (r *runReader) next() (bool, error) {
	size, err := binary.ReadUvarint(r.in)
	if err == io.EOF {
		return false, nil
	}
	if err == nil && size > longestCounted {
		err = errors.New("corrupt record")
	}
	if err == nil {
		r.piece = slices.Grow(r.piece[:0], int(size))[:size]
		_, err = io.ReadFull(r.in, r.piece)
	}
	var n uint64
	if err == nil {
		n, err = binary.ReadUvarint(r.in)
	}
	if err != nil {
		return false, fmt.Errorf("cannot read back counts of pretokens: %w", err)
	}
	r.n = int64(n)
	return true, nil
}

// runHeap is a heap with the smallest pretoken first.
type runHeap []*runReader

func (h runHeap) Len() int           { return len(h) }
func (h runHeap) Less(i, j int) bool { return bytes.Compare(h[i].piece, h[j].piece) < 0 }
func (h runHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(any)          { panic("tokenizer: runs do not grow") }
func (h *runHeap) Pop() any {
	*h = (*h)[:len(*h)-1]
	return nil
}
