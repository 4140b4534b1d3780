package tokenizer

import (
	"errors"
	"fmt"
)

// Memory for learning. Of more distinct pretokens than fit, those that occur least often are left out: all that occur
// fewer than c times, for the smallest c that does. This is decided by the counts, the vocabulary to learn and the memory
// given; the number of threads, and what had to go to disk before, have no part in it.

// minMemory is the least that [TrainOptions.Memory] may be.
const minMemory = 4 << 20

// TrainReport says what [Train] learned from.
type TrainReport struct {
	Words       int64   `json:"words"`       // distinct pretokens of two bytes or more
	Occurrences int64   `json:"occurrences"` // of them, in the text
	Bytes       int64   `json:"bytes"`       // of these
	Spilled     int64   `json:"spilled"`     // bytes of counts written to disk, those of merging included
	Peak        int64   `json:"peak_bytes"`  // of counts, then of learning, as accounted for TrainOptions.Memory
	Dropped     Dropped `json:"dropped"`
}

// Dropped is what learning left out for want of memory: all pretokens that occur fewer than Below times.
type Dropped struct {
	Below       int64 `json:"below"`       // 0: nothing was left out
	Words       int64 `json:"words"`       // distinct pretokens
	Occurrences int64 `json:"occurrences"` // of them, in the text
	Bytes       int64 `json:"bytes"`       // of these
}

// tally sums up pretokens by how often they occur.
type tally struct {
	rare [4096]group // those that occur i times
	all  group
}

// group is a number of distinct pretokens.
type group struct{ words, symbols, occurrences, bytes int64 }

func (g *group) add(o group) {
	g.words += o.words
	g.symbols += o.symbols
	g.occurrences += o.occurrences
	g.bytes += o.bytes
}

func (g group) without(o group) group {
	return group{g.words - o.words, g.symbols - o.symbols, g.occurrences - o.occurrences, g.bytes - o.bytes}
}

// add takes a pretoken that occurs n times. Those of one byte have no pairs and take no part.
func (t *tally) add(piece []byte, n int64) {
	if len(piece) < 2 {
		return
	}
	g := group{1, int64(len(piece)), n, n * int64(len(piece))}
	t.all.add(g)
	if n < int64(len(t.rare)) {
		t.rare[n].add(g)
	}
}

// below is what occurs fewer than c times.
func (t *tally) below(c int) (g group) {
	for _, r := range t.rare[:c] {
		g.add(r)
	}
	return g
}

// keep returns the smallest c from least on such that what occurs c times or more can be learned from with memory bytes.
func (t *tally) keep(least int, memory int64) (c int, ok bool) {
	for c, drop := least, t.below(least); c < len(t.rare); c++ {
		if learnerMemory(t.all.words-drop.words, t.all.symbols-drop.symbols) <= memory {
			return c, true
		}
		drop.add(t.rare[c])
	}
	return 0, false
}

// What a learner takes, in bytes: what it holds, and for slices that grow what growing takes besides.
const (
	learnerBase    = 2 << 20 // tables of any size
	wordBytes      = 24
	symbolBytes    = 4
	firstListBytes = 4 // a word in the list of a pair of bytes, which is made in its full size
	listBytes      = 8 // and of another
	pairBytes      = 100
	heapBytes      = 54
	tokenBytes     = 100
)

// learnerMemory is about what learning takes: what it holds at first, and 12 bytes a symbol for the pairs it makes. Text
// takes 10 to 25. It is a guess on the low side, for when it proves wrong there is a second try.
func learnerMemory(words, symbols int64) int64 {
	return learnerBase + wordBytes*words + (symbolBytes+firstListBytes+12)*symbols
}

// size is the memory of the learner. It depends on the counts alone, not on the order of the words.
func (l *learner) size() int64 {
	return learnerBase + wordBytes*int64(len(l.words)) + symbolBytes*int64(len(l.symbols)) + l.lists +
		pairBytes*int64(len(l.pairs.pairs)) + heapBytes*int64(len(l.heap)) + tokenBytes*int64(l.vocab.len())
}

// errMemory stops a learner that needs more than its limit.
var errMemory = errors.New("not enough memory to learn from so many pretokens")

// MemoryError means that there is not enough memory to learn from all pretokens, and that none may be left out, or that
// leaving out rare ones would not help.
type MemoryError struct {
	Words int64 // distinct pretokens
	Have  int64 // TrainOptions.Memory
	Need  int64 // bytes that should do for all
	Below int   // with those left out that occur fewer times it would do as it is; 0: it would not
}

func (e *MemoryError) Error() string {
	text := fmt.Sprintf("%d distinct pretokens are too many to learn from with %d MiB of memory\n  try %d MiB", e.Words, e.Have>>20, e.Need>>20+1)
	if e.Below > 0 {
		text += fmt.Sprintf(", or drop pretokens that occur fewer than %d times", e.Below)
	}
	return text
}

// tooLittle is the error where those that occur fewer than below times must not go.
func (t *tally) tooLittle(memory int64, below int) error {
	return &MemoryError{Words: t.all.words, Have: memory, Need: max(learnerMemory(t.all.words, t.all.symbols)+18*t.all.symbols, memory*5/4), Below: below}
}
