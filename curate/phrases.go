package curate

import (
	"slices"

	"anneal/dedup"
)

// phrases is a set of runs of words, of a few lengths, and the item that each run comes from. Words are compared as in
// package dedup: letters in lower case, digits as 0, ignoring the characters between words. A run takes about 24 bytes
// of memory.
type phrases struct {
	sizes []int // lengths in words that occur
	from  map[uint64]int32
	maybe []uint64 // one bit for each value of a hash's upper bits; most runs of a text are not in the set
}

// maybeBits is log₂ of the bits of phrases.maybe: 512 KiB, which stays in a core's cache.
const maybeBits = 22

func newPhrases() *phrases {
	return &phrases{from: map[uint64]int32{}, maybe: make([]uint64, 1<<maybeBits/64)}
}

// runs appends the keys of every run of n words.
func runs(dst []uint64, words []uint64, n int) []uint64 {
	if len(words) < n {
		return dst
	}
	first := len(dst)
	dst = append(dst, words...)
	return dst[:first+len(dedup.NGrams(dst[first:], n))]
}

// key distinguishes runs of different lengths.
func key(run uint64, n int) uint64 {
	run ^= uint64(n) * 0x9e3779b97f4a7c15
	run ^= run >> 32
	return run * 0xd6e8feb86659fd93
}

// add adds every run of n words. A run that several items have belongs to the first.
func (p *phrases) add(words []uint64, n int, from int32) {
	if !slices.Contains(p.sizes, n) {
		p.sizes = append(p.sizes, n)
		slices.Sort(p.sizes)
	}
	for _, run := range runs(nil, words, n) {
		k := key(run, n)
		if _, ok := p.from[k]; !ok {
			p.from[k] = from
		}
		p.maybe[k>>(64-maybeBits)/64] |= 1 << (k >> (64 - maybeBits) % 64)
	}
}

// finder looks for phrases in texts. It must be used from one goroutine.
type finder struct {
	*phrases
	words dedup.Words
	run   []uint64
}

// find calls hit for each run of the set in text, and returns how many runs of the longest length text has.
func (f *finder) find(text []byte, hit func(from int32)) (all int) {
	words := f.words.Hashes(text)
	for _, n := range f.sizes {
		f.run = runs(f.run[:0], words, n)
		for _, run := range f.run {
			k := key(run, n)
			if f.maybe[k>>(64-maybeBits)/64]>>(k>>(64-maybeBits)%64)&1 == 0 {
				continue
			}
			if from, ok := f.from[k]; ok {
				hit(from)
			}
		}
		all = len(f.run)
	}
	if len(text) > keepMost {
		f.words, f.run = dedup.Words{}, nil
	}
	return all
}
