package dedup

import (
	"fmt"
	"math"
	"math/bits"
	"sync"
	"unsafe"

	"anneal/tensor"
)

// Bloom drops documents most of whose n-grams of words were seen before, as bff of OLMo and DCLM do. It finds passages
// that long documents share, which MinHash does not see. It remembers n-grams in a blocked Bloom filter (Bloom 1970;
// Putze, Sanders and Singler 2007): one n-gram sets 7 bits of one line of 64 bytes, so that a look-up is one cache
// miss. With n n-grams in m lines, the probability that it takes a new n-gram for an old one is
//
//	Σ_j Poisson(j; n/m)·(1 − (1 − 1/512)^7j)^7: 0.00003 with 32 bits an n-gram, 0.0003 with 20, 0.004 with 12
//
// All n-grams of a document are looked up before any is remembered, so repetitions within a document do not count. The
// n-grams of a dropped document are remembered, too. Not for code, where licences and imports repeat. Not for short
// documents: a document of fewer than Words words is one n-gram.
//
// Lines are divided among the workers, and each worker takes documents in order, so that the result does not depend on
// their number.
type Bloom struct {
	Words     int     // in an n-gram; default 13
	Threshold float64 // a document with at least this share of its n-grams seen before is dropped; default 0.8
	Memory    int64   // bytes of the filter; default 256 MiB. Unlike the memory for sorting it changes the result
}

func (b Bloom) withDefaults() Bloom {
	if b.Words == 0 {
		b.Words = 13
	}
	if b.Threshold == 0 {
		b.Threshold = 0.8
	}
	if b.Memory == 0 {
		b.Memory = 256 << 20
	}
	return b
}

func (b Bloom) check() error {
	if b.Words < 0 || b.Memory < 0 {
		return fmt.Errorf("a Bloom filter of %d words in %d bytes: neither can be negative\n"+
			"  try 13 words in 256 MiB, the defaults", b.Words, b.Memory)
	}
	if !(b.Threshold >= 0 && b.Threshold <= 1) {
		return fmt.Errorf("the threshold of n-grams is a share of 0 to 1, not %v\n  try 0.8", b.Threshold)
	}
	return nil
}

type line [8]uint64

// Filter remembers n-grams. It is for one goroutine, and starts others.
type Filter struct {
	cfg    Bloom
	arena  *tensor.Arena // holds lines, outside the heap, for huge pages and so that the heap's limit does not grow
	lines  []line
	n      int64 // number of new n-grams remembered
	part   []part
	signer []Words
}

// part is one worker's part of the filter.
type part struct {
	seen []int32 // by document of the batch
	n    int64
}

// grams holds the hashes of the n-grams of a document, by the part that their lines are in.
type grams [][]uint64

// NewFilter makes an empty filter for b, whose zero fields take the defaults, worked by threads goroutines.
func (b Bloom) NewFilter(threads int) (*Filter, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	b = b.withDefaults()
	threads = max(threads, 1)
	arena, err := tensor.NewArena("the Bloom filter", int(max(b.Memory, 64)))
	if err != nil {
		return nil, err
	}
	n := arena.Size() / 64
	memory := arena.New(tensor.U8, n, 64)
	lines := unsafe.Slice((*line)(unsafe.Pointer(unsafe.SliceData(memory.Raw()))), n)
	return &Filter{cfg: b, arena: arena, lines: lines, part: make([]part, threads), signer: make([]Words, threads)}, nil
}

// Close frees the memory.
func (f *Filter) Close() error {
	f.lines = nil
	return f.arena.Close()
}

// at returns the line of an n-gram. It uses a multiplication, so that any number of lines is used evenly.
func (f *Filter) at(gram uint64) int {
	hi, _ := bits.Mul64(gram, uint64(len(f.lines)))
	return int(hi)
}

// Shares appends to dst the share of n-grams seen before of each text, and remembers them all. A text without words
// has 0.
func (f *Filter) Shares(dst []float64, texts [][]byte) []float64 {
	workers := len(f.part)
	docs := make([]grams, len(texts))
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(texts); i += workers {
				docs[i] = f.cut(NGrams(f.signer[w].Hashes(texts[i]), f.cfg.Words))
			}
		})
	}
	wg.Wait()
	for w := range workers {
		wg.Go(func() { f.pass(w, docs) })
	}
	wg.Wait()
	for i := range texts {
		seen, all := 0, 0
		for w := range workers {
			seen += int(f.part[w].seen[i])
			all += len(docs[i][w])
		}
		dst = append(dst, float64(seen)/float64(max(all, 1)))
	}
	f.n = 0
	for _, p := range f.part {
		f.n += p.n
	}
	return dst
}

// cut sorts n-grams by the part they belong to.
func (f *Filter) cut(list []uint64) grams {
	g := make(grams, len(f.part))
	for w := range g {
		g[w] = make([]uint64, 0, len(list)/len(g)+len(list)/8)
	}
	for _, x := range list {
		x = fold64(x^k2, k1)
		w := f.at(x) * len(g) / len(f.lines) // whole lines: two parts never share one
		g[w] = append(g[w], x)
	}
	return g
}

// ahead is the number of look-ups by which lines are prefetched in advance.
const ahead = 24

// pass looks up the n-grams of part w and remembers them, document by document.
func (f *Filter) pass(w int, docs []grams) {
	p := &f.part[w]
	p.seen = p.seen[:0]
	for i := range docs {
		list := docs[i][w]
		for _, x := range list[:min(ahead, len(list))] {
			prefetch(&f.lines[f.at(x)])
		}
		seen := int32(0)
		for j, x := range list {
			if j+ahead < len(list) {
				prefetch(&f.lines[f.at(list[j+ahead])])
			}
			if f.lines[f.at(x)].has(x) {
				seen++
			}
		}
		p.seen = append(p.seen, seen)
		if int(seen) == len(list) {
			continue
		}
		for _, x := range list {
			if f.lines[f.at(x)].add(x) {
				p.n++
			}
		}
	}
}

// has reports whether the 7 bits of an n-gram are set. Nine bits of a second hash select each bit.
func (l *line) has(gram uint64) bool {
	h := fold64(gram^k1, k2)
	for range 7 {
		if l[h>>6&7]>>(h&63)&1 == 0 {
			return false
		}
		h >>= 9
	}
	return true
}

// add sets the bits of gram and reports whether one was new.
func (l *line) add(gram uint64) bool {
	var old uint64 = 1
	h := fold64(gram^k1, k2)
	for range 7 {
		w, b := &l[h>>6&7], h&63
		old &= *w >> b
		*w |= 1 << b
		h >>= 9
	}
	return old == 0
}

// FalsePositives returns the probability, by the formula, that the filter now takes a new n-gram for an old one.
func (f *Filter) FalsePositives() float64 { return blockedRate(float64(f.n) / float64(len(f.lines))) }

// blockedRate is the formula for load n-grams per line.
func blockedRate(load float64) float64 {
	sum, p := 0.0, math.Exp(-load) // Poisson(0)
	for j := 0; j < 100+int(4*load); j++ {
		sum += p * math.Pow(1-math.Pow(1-1.0/512, float64(7*j)), 7)
		p *= load / float64(j+1)
	}
	return sum
}
