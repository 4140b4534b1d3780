package tokenizer

import "context"

// learner computes merges from counted words.
type learner struct {
	symbols []uint32 // the tokens of all words
	words   []trainWord
	pairs   *pairTable
	heap    candidates
	vocab   *interner // the tokens; ids count from 0 in the order of the byte-level alphabet
	merges  []merge
	special map[string]bool // texts that no token may have, in the byte-level alphabet

	lists int64 // bytes of the pairs' word lists
	limit int64 // memory limit in bytes; 0 for none
	peak  int64

	left, right, lostLeft, lostRight neighbours // buffers of the current merge
}

// trainWord is a distinct pretoken: symbols[start:start+len], which occurs count times.
type trainWord struct {
	start uint64
	len   uint32
	count int64
}

// neighbours collects, for each token next to a merge, the change of their pair's count, and the words concerned.
type neighbours struct {
	change []int64 // by token
	seen   []bool
	tokens []uint32 // tokens seen, in order
	at     []occurrence
}

type occurrence struct{ token, word uint32 }

func (n *neighbours) add(token uint32, change int64) {
	for int(token) >= len(n.seen) {
		n.seen = append(n.seen, make([]bool, 1024)...)
		n.change = append(n.change, make([]int64, 1024)...)
	}
	if !n.seen[token] {
		n.seen[token] = true
		n.tokens = append(n.tokens, token)
	}
	n.change[token] += change
}

// newLearner returns a learner for the pretokens that each yields and that occur at least least times; size estimates
// their number.
func newLearner(size group, least int64, specials []string,
	each func(func(piece []byte, n int64) error) error) (*learner, error) {
	l := &learner{pairs: newPairTable(), vocab: byteVocab(), special: map[string]bool{}}
	var idOf [256]uint32
	for i, b := range byteOrder {
		idOf[b] = uint32(i)
	}
	for _, s := range specials {
		l.special[s] = true
	}
	l.words = make([]trainWord, 0, size.words)
	l.symbols = make([]uint32, 0, size.symbols)
	err := each(func(piece []byte, n int64) error {
		if len(piece) < 2 || n < least {
			return nil // no pair, or dropped
		}
		l.words = append(l.words, trainWord{uint64(len(l.symbols)), uint32(len(piece)), n})
		for _, b := range piece {
			l.symbols = append(l.symbols, idOf[b])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	l.firstPairs()
	return l, nil
}

// firstPairs counts the pairs of bytes.
func (l *learner) firstPairs() {
	sizes := make([]uint32, 1<<16)
	for _, w := range l.words {
		s := l.symbols[w.start : w.start+uint64(w.len)]
		for i := range len(s) - 1 {
			sizes[s[i]<<8|s[i+1]]++
		}
	}
	for key, n := range sizes {
		if n > 0 {
			p := &l.pairs.pairs[l.pairs.get(pairKey(uint32(key>>8), uint32(key&0xff)))]
			p.words = make([]uint32, 0, n)
			l.lists += firstListBytes * int64(n)
		}
	}
	numbers := make([]uint32, 1<<16) // indexed by both bytes: a lookup without hashing
	for n := range l.pairs.pairs {
		key := l.pairs.pairs[n].key
		numbers[key>>32<<8|key&0xff] = uint32(n)
	}
	for i, w := range l.words {
		s := l.symbols[w.start : w.start+uint64(w.len)]
		for k := range len(s) - 1 {
			p := &l.pairs.pairs[numbers[s[k]<<8|s[k+1]]]
			p.count += w.count
			if len(p.words) == 0 || p.words[len(p.words)-1] != uint32(i) {
				p.words = append(p.words, uint32(i))
			}
		}
	}
	for n := range l.pairs.pairs {
		p := &l.pairs.pairs[n]
		l.heap = append(l.heap, candidate{p.count, p.key, uint32(n)})
	}
	l.heap.init()
}

// learn adds want tokens, or fewer if there are not enough pairs.
func (l *learner) learn(ctx context.Context, want int, report func(bool, func(*Progress))) error {
	report(true, func(p *Progress) { p.Phase, p.Words = "merge", len(l.words) })
	var name []byte
	for made := 0; made < want && len(l.heap) > 0; {
		size := l.size()
		if l.limit > 0 && size > l.limit {
			return errMemory
		}
		l.peak = max(l.peak, size)
		top := l.heap[0]
		p := &l.pairs.pairs[top.number]
		if p.count != top.count { // counts only fall after a pair is in the heap, unless it was added again
			if p.count > 0 {
				l.heap.settle(0, candidate{p.count, top.key, top.number})
			} else {
				l.heap.pop()
			}
			continue
		}
		l.heap.pop()
		left, right := uint32(p.key>>32), uint32(p.key)
		token := append(append([]byte{}, l.vocab.at(int(left))...), l.vocab.at(int(right))...)
		if name = appendByteLevel(name[:0], token); l.special[string(name)] {
			l.drop(p) // this text belongs to the special token
			continue
		}
		// Two merges can produce the same token; the second one adds no new token.
		before := l.vocab.len()
		id := uint32(l.vocab.add(token))
		made += l.vocab.len() - before
		l.merges = append(l.merges, merge{left, right, id})
		l.apply(top.number, left, right, id)
		if made%64 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			report(false, func(p *Progress) { p.Merges = made })
		}
	}
	report(true, func(p *Progress) { p.Merges = l.vocab.len() - 256 })
	return nil
}

// apply replaces left, right by id in all words that contain the pair, and updates the counts of neighbouring pairs.
func (l *learner) apply(number, left, right, id uint32) {
	for _, w := range l.pairs.pairs[number].words {
		l.mergeWord(w, left, right, id)
	}
	l.lose(&l.lostLeft, func(t uint32) uint64 { return pairKey(t, left) })
	l.lose(&l.lostRight, func(t uint32) uint64 { return pairKey(right, t) })
	l.gain(&l.left, func(t uint32) uint64 { return pairKey(t, id) })
	l.gain(&l.right, func(t uint32) uint64 { return pairKey(id, t) })
	p := &l.pairs.pairs[number]
	l.drop(p)
}

// drop removes a pair that is no longer a candidate.
func (l *learner) drop(p *pair) {
	if p.key>>32 < 256 && p.key&(1<<32-1) < 256 {
		l.lists -= firstListBytes * int64(cap(p.words))
	} else {
		l.lists -= listBytes * int64(len(p.words))
	}
	p.count, p.words = 0, nil
}

// mergeWord replaces left, right by id in word w, from the left, and records removed and new pairs.
func (l *learner) mergeWord(w, left, right, id uint32) {
	word := &l.words[w]
	s := l.symbols[word.start : word.start+uint64(word.len)]
	n := 0 // symbols written
	for i := 0; i < len(s); i++ {
		if s[i] != left || i+1 == len(s) || s[i+1] != right {
			s[n] = s[i]
			n++
			continue
		}
		i++
		if n > 0 {
			if before := s[n-1]; before == id {
				l.right.add(left, -word.count) // the pair (id, left) of the merge directly before
			} else {
				l.lostLeft.add(before, word.count)
			}
			l.left.add(s[n-1], word.count)
			l.left.at = append(l.left.at, occurrence{s[n-1], w})
		}
		if i+1 < len(s) {
			l.lostRight.add(s[i+1], word.count)
			l.right.add(s[i+1], word.count)
			l.right.at = append(l.right.at, occurrence{s[i+1], w})
		}
		s[n] = id
		n++
	}
	word.len = uint32(n)
}

// lose subtracts the counts of n from the pairs named by key.
func (l *learner) lose(n *neighbours, key func(token uint32) uint64) {
	for _, t := range n.tokens {
		l.pairs.pairs[l.pairs.get(key(t))].count -= n.change[t]
		n.change[t], n.seen[t] = 0, false
	}
	n.tokens = n.tokens[:0]
}

// gain adds the counts and words of n to the pairs named by key, and makes them candidates.
func (l *learner) gain(n *neighbours, key func(token uint32) uint64) {
	numbers := make([]uint32, len(n.tokens))
	for i, t := range n.tokens {
		numbers[i] = l.pairs.get(key(t))
		p := &l.pairs.pairs[numbers[i]]
		p.count += n.change[t]
		n.change[t] = int64(i) // reused as the index into numbers
		if p.count > 0 {
			l.heap.push(candidate{p.count, p.key, numbers[i]})
		}
	}
	for _, o := range n.at {
		p := &l.pairs.pairs[numbers[n.change[o.token]]]
		if len(p.words) == 0 || p.words[len(p.words)-1] != o.word {
			p.words = append(p.words, o.word)
			l.lists += listBytes
		}
	}
	for _, t := range n.tokens {
		n.change[t], n.seen[t] = 0, false
	}
	n.tokens, n.at = n.tokens[:0], n.at[:0]
}
