package fasttext

import (
	"bytes"
	"math/bits"
)

// endOfLine is the token that ends each text.
const endOfLine = "</s>"

// dictionary holds the words and labels of a model, and maps a token to its rows of the input matrix.
type dictionary struct {
	args   *args
	words  []string // nwords words, then the labels
	counts []int64
	nwords int
	tokens int64 // number of tokens in the training data
	slots  []wordSlot
	pruned *prunedGrams // the n-grams that have a row; nil if all have
}

type wordSlot struct {
	hash uint32
	id   int32 // 1 + index in words; 0 is free
}

func (d *dictionary) index() {
	d.slots = make([]wordSlot, 1<<bits.Len(uint(2*len(d.words))))
	mask := uint32(len(d.slots) - 1)
	for i, w := range d.words {
		h := hashToken([]byte(w))
		at := h & mask
		for d.slots[at].id != 0 {
			at = (at + 1) & mask
		}
		d.slots[at] = wordSlot{h, int32(i + 1)}
	}
}

// find returns the index of a token, or −1 if it is unknown. If a file has the token twice, it returns the first.
func (d *dictionary) find(token []byte, hash uint32) int {
	mask := uint32(len(d.slots) - 1)
	for at := hash & mask; d.slots[at].id != 0; at = (at + 1) & mask {
		if s := d.slots[at]; s.hash == hash && d.words[s.id-1] == string(token) {
			return int(s.id - 1)
		}
	}
	return -1
}

// isLabel reports whether a token is a label. The id is the result of find; for known tokens the file decides.
func (d *dictionary) isLabel(token []byte, id int) bool {
	if id >= 0 {
		return id >= d.nwords
	}
	return bytes.HasPrefix(token, []byte(LabelPrefix))
}

// hashStart and hashPrime are the constants of 32-bit FNV-1a.
const (
	hashStart = 2166136261
	hashPrime = 16777619
)

// hashByte treats bytes as signed, as the original does: bytes above ASCII set the upper bits.
func hashByte(h uint32, c byte) uint32 { return (h ^ uint32(int8(c))) * hashPrime }

func hashToken(token []byte) uint32 {
	h := uint32(hashStart)
	for _, c := range token {
		h = hashByte(h, c)
	}
	return h
}

func continuation(c byte) bool { return c&0xc0 == 0x80 }

// charGrams appends the rows of the character n-grams of a word in < and >, starting with those at byte from. It
// stops when ids is nearly full, and returns where to continue; len(word) means it is done. The capacity of ids must
// exceed maxNgram.
func (d *dictionary) charGrams(ids []int32, word []byte, from int) ([]int32, int) {
	bucket, minn, maxn := uint32(d.args.Bucket), int(d.args.MinN), int(d.args.MaxN)
	if maxn <= 0 {
		return ids, len(word)
	}
	for i := from; i < len(word); i++ {
		if continuation(word[i]) {
			continue
		}
		if len(ids)+maxNgram > cap(ids) {
			return ids, i
		}
		h := uint32(hashStart)
		for j, n := i, 1; j < len(word) && n <= maxn; n++ {
			h = hashByte(h, word[j])
			for j++; j < len(word) && continuation(word[j]); j++ {
				h = hashByte(h, word[j])
			}
			if n >= minn && (n > 1 || i > 0 && j < len(word)) {
				ids = d.pushGram(ids, int32(h%bucket))
			}
		}
	}
	return ids, len(word)
}

// pushGram appends the row of an n-gram's bucket, if it has one.
func (d *dictionary) pushGram(ids []int32, bucket int32) []int32 {
	if d.pruned != nil {
		if bucket = d.pruned.find(bucket); bucket < 0 {
			return ids
		}
	}
	return append(ids, int32(d.nwords)+bucket)
}

// wordGrams computes the rows of word n-grams from a sequence of word hashes.
type wordGrams struct {
	running []uint64 // hashes of the n-grams that end in the last word, the longest first
}

const wordGramFactor = 116049371

// push appends to ids the rows of the n-grams that end in the word with this hash: at most WordNgrams−1.
func (g *wordGrams) push(d *dictionary, ids []int32, hash uint32) []int32 {
	n := int(d.args.WordNgrams)
	if n <= 1 {
		return ids
	}
	h := uint64(int64(int32(hash))) // the original stores word hashes as signed numbers
	for i, r := range g.running {
		r = r*wordGramFactor + h
		g.running[i] = r
		ids = d.pushGram(ids, int32(r%uint64(d.args.Bucket)))
	}
	if len(g.running) == n-1 {
		copy(g.running, g.running[1:])
		g.running[n-2] = h
	} else {
		g.running = append(g.running, h)
	}
	return ids
}

func (g *wordGrams) reset() { g.running = g.running[:0] }

// prunedGrams maps buckets to rows. It is a hash table with open addressing; its keys are never negative.
type prunedGrams struct {
	keys, values []int32
	order        []int32 // keys in the order of the file
}

func newPrunedGrams(n int) *prunedGrams {
	size := 1 << bits.Len(uint(2*n))
	p := &prunedGrams{keys: make([]int32, size), values: make([]int32, size), order: make([]int32, 0, n)}
	for i := range p.keys {
		p.keys[i] = -1
	}
	return p
}

func (p *prunedGrams) slot(key int32) uint32 {
	mask := uint32(len(p.keys) - 1)
	at := uint32(key) * 2654435769 >> 7 & mask
	for p.keys[at] >= 0 && p.keys[at] != key {
		at = (at + 1) & mask
	}
	return at
}

func (p *prunedGrams) set(key, value int32) {
	at := p.slot(key)
	p.keys[at], p.values[at] = key, value
	p.order = append(p.order, key)
}

func (p *prunedGrams) find(key int32) int32 {
	if at := p.slot(key); p.keys[at] == key {
		return p.values[at]
	}
	return -1
}

// blanks are the characters that separate tokens.
const blanks = " \n\r\t\v\f\x00"

var separators = func() (t [256]bool) {
	for _, c := range blanks {
		t[c] = true
	}
	return t
}()

// nextToken returns the bounds of the first token that starts at or after i. At the end of the text, start is
// len(text).
func nextToken(text []byte, i int) (start, end int) {
	for i < len(text) && separators[text[i]] {
		i++
	}
	start = i
	for i < len(text) && !separators[text[i]] {
		i++
	}
	return start, i
}
