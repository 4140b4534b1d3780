package tokenizer

import (
	"context"
	"iter"
	"sync"
)

// wordCounts counts pretokens: short ones in a table of their own bytes, longer ones by their number in an interner.
type wordCounts struct {
	slots []countSlot
	used  int
	long  interner
	longN []int64
}

type countSlot struct {
	word
	n int64
}

func newWordCounts() *wordCounts { return &wordCounts{slots: make([]countSlot, 1<<12)} }

// addWord counts w another n times.
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

func (c *wordCounts) grow() {
	old := c.slots
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

// addLong counts piece, longer than shortWord, another n times.
func (c *wordCounts) addLong(piece []byte, n int64) {
	i := c.long.add(piece)
	if i == len(c.longN) {
		c.longN = append(c.longN, 0)
	}
	c.longN[i] += n
}

// longestCounted is the longest pretoken, in bytes, that is counted whole; longer ones count as pieces of this length.
// A merge looks through each word that it touches, so a genome without a line break would take hours otherwise. Tokens
// as long as that serve nobody.
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

// merge adds the counts of o, which is used up.
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

// len is the number of distinct pretokens.
func (c *wordCounts) len() int { return c.used + c.long.len() }

// batchSize is about how many bytes of text a worker gets at a time.
const batchSize = 1 << 20

// batch is a number of texts, one after the other.
type batch struct {
	text []byte
	ends []int
}

// countDocuments counts the pretokens of all documents with several workers, each with counts of its own. Sums do not
// depend on who counted what.
func countDocuments(ctx context.Context, p pattern, threads int, docs iter.Seq2[[]byte, error],
	report func(bool, func(*Progress))) (*wordCounts, error) {
	full := make(chan *batch, threads)
	empty := make(chan *batch, 2*threads+1)
	for range cap(empty) {
		empty <- &batch{}
	}
	parts := make([]*wordCounts, threads)
	var workers sync.WaitGroup
	for i := range parts {
		workers.Go(func() {
			parts[i] = newWordCounts()
			s, ends := p.new(), make([]int, 512)
			for b := range full {
				start := 0
				for _, end := range b.ends {
					parts[i].addText(s, ends, b.text[start:end])
					start = end
				}
				b.text, b.ends = b.text[:0], b.ends[:0]
				empty <- b
			}
		})
	}
	err := fillBatches(ctx, p, docs, full, empty, report)
	close(full)
	workers.Wait()
	if err != nil {
		return nil, err
	}
	for _, part := range parts[1:] {
		parts[0].merge(part)
	}
	return parts[0], nil
}

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

// seam returns a place at or after want where text can be cut without a change to its pretokens, or its length. With the
// known patterns one is between an ASCII letter and a newline: letters end at it whatever follows, and what follows
// starts a pretoken whatever came before.
func seam(text []byte, want int) int {
	for i := want; i < len(text); i++ {
		if text[i] == '\n' && asciiLower(text[i-1]) >= 'a' && asciiLower(text[i-1]) <= 'z' {
			return i
		}
	}
	return len(text)
}
