package tokenizer

import (
	"errors"
	"fmt"
)

// Memory for training. If there are more distinct pretokens than fit, the rarest are dropped: all that occur fewer
// than c times, for the smallest c that suffices. This depends on the counts, the vocabulary size and the memory
// limit, but not on the number of threads or on earlier spills to disk.

// minMemory is the smallest valid [TrainOptions.Memory].
const minMemory = 4 << 20

// TrainReport describes what [Train] learned from.
type TrainReport struct {
	Words       int64   `json:"words"`       // distinct pretokens of two bytes or more
	Occurrences int64   `json:"occurrences"` // of them, in the text
	Bytes       int64   `json:"bytes"`       // of these occurrences
	Spilled     int64   `json:"spilled"`     // bytes of counts written to disk, including merge passes
	Peak        int64   `json:"peak_bytes"`  // peak of counting or learning, as counted for TrainOptions.Memory
	Dropped     Dropped `json:"dropped"`
}

// Dropped describes what training dropped for lack of memory: all pretokens that occur fewer than Below times.
type Dropped struct {
	Below       int64 `json:"below"`       // 0 if nothing was dropped
	Words       int64 `json:"words"`       // distinct pretokens
	Occurrences int64 `json:"occurrences"` // of them, in the text
	Bytes       int64 `json:"bytes"`       // of these occurrences
}

// tally counts pretokens by their number of occurrences.
type tally struct {
	rare [4096]group // pretokens that occur i times
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

// add adds a pretoken that occurs n times. Pretokens of one byte have no pairs and are ignored.
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

// below returns the pretokens that occur fewer than c times.
func (t *tally) below(c int) (g group) {
	for _, r := range t.rare[:c] {
		g.add(r)
	}
	return g
}

// keep returns the smallest c from least on such that the pretokens that occur at least c times can be learned from
// with memory bytes.
func (t *tally) keep(least int, memory int64) (c int, ok bool) {
	for c, drop := least, t.below(least); c < len(t.rare); c++ {
		if learnerMemory(t.all.words-drop.words, t.all.symbols-drop.symbols) <= memory {
			return c, true
		}
		drop.add(t.rare[c])
	}
	return 0, false
}

// Memory of a learner in bytes: contents, plus the overhead of growing slices.
const (
	learnerBase    = 2 << 20 // tables of any size
	wordBytes      = 24
	symbolBytes    = 4
	firstListBytes = 4 // per word in the list of a pair of bytes, which is allocated in its final size
	listBytes      = 8 // per word in other lists
	pairBytes      = 100
	heapBytes      = 54
	tokenBytes     = 100
)

// learnerMemory estimates the memory for learning: the initial contents, plus 12 bytes per symbol for new pairs. Real
// text takes 10 to 25. The estimate is low on purpose: if it is wrong, training tries again.
func learnerMemory(words, symbols int64) int64 {
	return learnerBase + wordBytes*words + (symbolBytes+firstListBytes+12)*symbols
}

// size returns the memory of the learner. It depends only on the counts, not on the order of the words.
func (l *learner) size() int64 {
	return learnerBase + wordBytes*int64(len(l.words)) + symbolBytes*int64(len(l.symbols)) + l.lists +
		pairBytes*int64(len(l.pairs.pairs)) + heapBytes*int64(len(l.heap)) + tokenBytes*int64(l.vocab.len())
}

// errMemory stops a learner that needs more than its limit.
var errMemory = errors.New("not enough memory to learn from so many pretokens")

// MemoryError means that there is not enough memory to learn from all pretokens, and that dropping rare ones is not
// allowed or does not help.
type MemoryError struct {
	Words int64 // distinct pretokens
	Have  int64 // TrainOptions.Memory
	Need  int64 // estimated bytes for all pretokens
	Below int   // the memory suffices without pretokens that occur fewer times; 0 if it never does
}

func (e *MemoryError) Error() string {
	text := fmt.Sprintf("%d distinct pretokens are too many to learn from with %d MiB of memory\n  try %d MiB",
		e.Words, e.Have>>20, e.Need>>20+1)
	if e.Below > 0 {
		text += fmt.Sprintf(", or drop pretokens that occur fewer than %d times", e.Below)
	}
	return text
}

// tooLittle returns the error if pretokens that occur fewer than below times must be kept.
func (t *tally) tooLittle(memory int64, below int) error {
	return &MemoryError{
		Words: t.all.words, Have: memory,
		Need: max(learnerMemory(t.all.words, t.all.symbols)+18*t.all.symbols, memory*5/4), Below: below,
	}
}
