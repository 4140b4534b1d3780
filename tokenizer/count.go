package tokenizer

import (
	"cmp"
	"context"
	"iter"
	"sync"
)

// wordCounts counts pretokens: short ones in a table of their bytes, longer ones by their number in an interner.
type wordCounts struct {
	slots []countSlot
	used  int
	long  interner
	longN []int64

	limit int64                   // memory limit in bytes; 0 for none
	full  func(*wordCounts) error // stores all counts elsewhere when the limit is near
	err   error                   // error of full
	peak  int64                   // memory peak in bytes
}

type countSlot struct {
	word
	n int64
}

func newWordCounts() *wordCounts { return &wordCounts{slots: make([]countSlot, 1<<12)} }

// addWord adds n to the count of w.
func (c *wordCounts) addWord(w word, n int64) {
	mask := uint64(len(c.slots) - 1)
	for i := w.hash(); ; i++ {
		s := &c.slots[i&mask]
		if s.word == w {
			s.n += n
			return
		}
		if s.hi == 0 {
			*s = countSlot{w, n}
			if c.used++; 8*c.used > 5*len(c.slots) {
				c.grow()
			}
			return
		}
	}
}

// slotBytes is the size of a countSlot.
const slotBytes = 24

// size returns the memory of c in bytes, including the overhead of growing and sorting for long pretokens.
func (c *wordCounts) size() int64 {
	return slotBytes*int64(len(c.slots)) + c.long.size()*9/4 + 22*int64(len(c.longN))
}

// makeRoom stores all counts elsewhere if more bytes would exceed the limit. It reports whether it did.
func (c *wordCounts) makeRoom(more int64) bool {
	size := c.size() + more
	if c.limit == 0 || size <= c.limit {
		c.peak = max(c.peak, size)
		return false
	}
	if err := c.full(c); err != nil {
		c.err = err
		c.reset()
	}
	return true
}

// reset removes all pretokens. The table keeps its size.
func (c *wordCounts) reset() {
	clear(c.slots)
	c.used, c.long, c.longN = 0, interner{}, nil
}

func (c *wordCounts) grow() {
	old := c.slots
	if c.makeRoom(2 * slotBytes * int64(len(old))) {
		return
	}
	c.slots = make([]countSlot, 2*len(old))
	mask := uint64(len(c.slots) - 1)
	for _, s := range old {
		if s.hi == 0 {
			continue
		}
		i := s.hash() & mask
		for c.slots[i].hi != 0 {
			i = (i + 1) & mask
		}
		c.slots[i] = s
	}
}

// addLong adds n to the count of piece, which must be longer than shortWord.
func (c *wordCounts) addLong(piece []byte, n int64) {
	i := c.long.add(piece)
	if i == len(c.longN) {
		c.longN = append(c.longN, n)
		c.makeRoom(0)
		return
	}
	c.longN[i] += n
}

// longestCounted is the longest pretoken, in bytes, that is counted whole; longer ones count as pieces of this
// length. A merge scans each word that it changes, so a genome without line breaks would otherwise take hours, and
// tokens of that length are useless.
const longestCounted = 1024

// addText counts the pretokens of text.
func (c *wordCounts) addText(s splitter, ends []int, text []byte) {
	s.reset(text)
	start := 0
	for n := s.next(ends); n > 0; n = s.next(ends) {
		for _, end := range ends[:n] {
			for ; end-start > longestCounted; start += longestCounted {
				c.addLong(text[start:start+longestCounted], 1)
			}
			if end-start <= shortWord {
				c.addWord(packWord(text, start, end), 1)
			} else {
				c.addLong(text[start:end], 1)
			}
			start = end
		}
	}
}

// merge adds the counts of o, and consumes o.
func (c *wordCounts) merge(o *wordCounts) {
	for _, s := range o.slots {
		if s.hi != 0 {
			c.addWord(s.word, s.n)
		}
	}
	for i, n := range o.longN {
		c.addLong(o.long.at(i), n)
	}
}

// each calls see for every pretoken, in no order.
func (c *wordCounts) each(see func(piece []byte, n int64) error) error {
	var buf []byte
	for _, s := range c.slots {
		if s.hi == 0 {
			continue
		}
		buf = s.appendTo(buf[:0])
		if err := see(buf, s.n); err != nil {
			return err
		}
	}
	for i, n := range c.longN {
		if err := see(c.long.at(i), n); err != nil {
			return err
		}
	}
	return nil
}

// batchSize is the approximate size in bytes of a worker's batch of text.
const batchSize = 1 << 20

// batch is a number of consecutive texts.
type batch struct {
	text []byte
	ends []int
}

// countDocuments counts the pretokens of all documents with several workers, each with its own counts. The sums do
// not depend on the distribution of work. With a limit, in bytes for all counts together, counts that take more than an
// eighth of it end up in runs, and the result is nil.
func countDocuments(ctx context.Context, p pattern, threads int, limit int64, runs *runFile,
	docs iter.Seq2[[]byte, error],
	report func(bool, func(*Progress))) (all *wordCounts, peak int64, err error) {
	if limit > 0 {
		threads = int(min(int64(threads), limit/minShare))
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	full := make(chan *batch, threads)
	empty := make(chan *batch, 2*threads+1)
	for range cap(empty) {
		empty <- &batch{}
	}
	parts := make([]*wordCounts, threads)
	var workers sync.WaitGroup
	for i := range parts {
		parts[i] = newWordCounts()
		workers.Go(func() {
			c := parts[i]
			c.limit, c.full = limit/int64(threads), runs.add
			s, ends := p.new(), make([]int, 512)
			for b := range full {
				start := 0
				for _, end := range b.ends {
					c.addText(s, ends, b.text[start:end])
					start = end
				}
				if c.err != nil {
					stop() // stops reading
				}
				b.text, b.ends = b.text[:0], b.ends[:0]
				empty <- b
			}
		})
	}
	err = fillBatches(ctx, p, docs, full, empty, report)
	close(full)
	workers.Wait()
	var failed error
	size := int64(0)
	for _, c := range parts {
		failed = cmp.Or(failed, c.err)
		peak += c.peak
		size += c.size()
	}
	if err = cmp.Or(failed, err); err != nil {
		return nil, peak, err
	}
	if limit > 0 && (len(runs.runs) > 0 || size > limit/8) {
		return nil, peak, runs.addAll(parts)
	}
	for _, part := range parts[1:] {
		parts[0].merge(part)
	}
	return parts[0], parts[0].size(), nil
}

// minShare is the smallest useful memory of a worker, in bytes.
const minShare = 1 << 20

// fillBatches copies documents into batches. It stops at the first error of docs or of ctx.
func fillBatches(ctx context.Context, p pattern, docs iter.Seq2[[]byte, error], full chan<- *batch, empty <-chan *batch,
	report func(bool, func(*Progress))) error {
	b := <-empty
	for doc, err := range docs {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for rest := doc; len(rest) > 0; {
			n := len(rest)
			if p.name != "" {
				n = seam(rest, batchSize)
			}
			b.text = append(b.text, rest[:n]...)
			b.ends = append(b.ends, len(b.text))
			rest = rest[n:]
			if len(b.text) >= batchSize {
				full <- b
				b = <-empty
			}
		}
		report(false, func(p *Progress) { p.Documents++; p.Bytes += int64(len(doc)) })
	}
	if len(b.text) > 0 {
		full <- b
	}
	return nil
}

// seam returns a position at or after want where text can be cut without changing its pretokens, or its length. With
// the known patterns such a position is between an ASCII letter and a newline: letters end there whatever follows,
// and a pretoken starts there whatever came before.
func seam(text []byte, want int) int {
	for i := want; i < len(text); i++ {
		if text[i] == '\n' && asciiLower(text[i-1]) >= 'a' && asciiLower(text[i-1]) <= 'z' {
			return i
		}
	}
	return len(text)
}
