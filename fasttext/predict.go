package fasttext

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// Predictor scores texts. It is not safe for concurrent use.
//
// A text is treated as the original treats a line: tokens are separated by blanks, line ends count as blanks, the
// token </s> ends the text even in the middle, and labels in it are skipped. Text is not put in lower case, and its
// length is not limited.
//
// Most tokens have been seen before. A table keeps the sum of the vectors of a token and its n-grams, so that a
// repeated token costs a look-up and one addition. Sums are formed token by token, whether or not a token is in the
// table, so that scores depend only on the text.
type Predictor struct {
	m      *Model
	words  []float32 // sum over tokens
	grams  []float32 // sum over word n-grams
	hidden []float32
	scores []float32
	reach  []float32 // scores of the inner nodes of the tree

	keys    []tokenKey
	values  []tokenValue
	vectors []float32 // [slots, dim]
	pending []int32   // slots whose vectors are still to be added to words
	rows    []int32
	running wordGrams
	word    []byte
	vector  []float32
}

// tokenKey is a token of at most 23 bytes and its length. The zero value means no token.
type tokenKey [3]uint64

type tokenValue struct {
	rows int32 // number of rows in the sum; −1 for a label
	hash uint32
}

const (
	keyBytes     = 23
	cacheBytes   = 4 << 20
	rowsAtOnce   = 512
	addedAtOnce  = 64
	mostSlots    = 1 << 15
	cacheKeySize = 32 // including the value
)

// NewPredictor returns a Predictor. It uses at most 5 MiB.
func (m *Model) NewPredictor() *Predictor {
	dim := int(m.args.Dim)
	slots := min(1<<(bits.Len(uint(cacheBytes/(4*dim+cacheKeySize)))-1), mostSlots)
	return &Predictor{
		m: m, words: make([]float32, dim), grams: make([]float32, dim), hidden: make([]float32, dim), vector: make([]float32, dim),
		scores: make([]float32, len(m.labels)), reach: make([]float32, len(m.tree)),
		keys: make([]tokenKey, slots), values: make([]tokenValue, slots), vectors: make([]float32, slots*dim),
		pending: make([]int32, 0, addedAtOnce), rows: make([]int32, 0, rowsAtOnce),
	}
}

// Prediction is a label and its score. The score is the probability plus 1e-5, as in the original.
type Prediction struct {
	Label string  `json:"label"`
	Score float32 `json:"score"`
}

// Scores returns the score of each label, in the order of Labels: the probability plus 1e-5. The slice is valid until
// the next call. It is nil if the model knows nothing in the text.
func (p *Predictor) Scores(text []byte) []float32 {
	if !p.average(text) {
		return nil
	}
	p.output(0)
	for i, s := range p.scores {
		p.scores[i] = float32(math.Exp(float64(s)))
	}
	return p.scores
}

// Predict returns at most k labels whose probability is at least the threshold, the best first. Labels with equal
// scores are ordered by frequency.
func (p *Predictor) Predict(text []byte, k int, threshold float32) []Prediction {
	if !p.average(text) {
		return nil
	}
	p.output(threshold)
	order := make([]int, 0, len(p.scores))
	for i, s := range p.scores {
		if !math.IsInf(float64(s), -1) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p.scores[b], p.scores[a]) })
	k = min(max(k, 0), len(order))
	out := make([]Prediction, 0, k)
	for _, i := range order[:k] {
		out = append(out, Prediction{p.m.labels[i], float32(math.Exp(float64(p.scores[i])))})
	}
	return out
}

// average computes the hidden vector of a text. It returns false if the text has no rows.
func (p *Predictor) average(text []byte) bool {
	clear(p.words)
	clear(p.grams)
	p.pending, p.rows = p.pending[:0], p.rows[:0]
	p.running.reset()
	n := 0
	for i := 0; ; {
		start, end := nextToken(text, i)
		token := text[start:end]
		last := len(token) == 0 || string(token) == endOfLine
		if last {
			token = []byte(endOfLine)
		}
		v := p.token(token)
		if v.rows >= 0 {
			n += int(v.rows)
			before := len(p.rows)
			p.rows = p.running.push(p.m.dict, p.rows, v.hash)
			n += len(p.rows) - before
			if len(p.rows)+maxNgram > cap(p.rows) {
				p.addGrams()
			}
		}
		if last {
			break
		}
		i = end
	}
	p.addPending()
	p.addGrams()
	if n == 0 {
		return false
	}
	scale := float32(1 / float64(n))
	for i, w := range p.words {
		p.hidden[i] = (w + p.grams[i]) * scale
	}
	return true
}

// token adds the vector of a token to p.words, now or at the next addPending.
func (p *Predictor) token(token []byte) tokenValue {
	if len(token) > keyBytes {
		p.addPending()
		v := p.embed(p.vector, token)
		for i, x := range p.vector {
			p.words[i] += x
		}
		return v
	}
	var padded [24]byte
	copy(padded[:], token)
	padded[23] = byte(len(token))
	key := tokenKey{binary.LittleEndian.Uint64(padded[:]), binary.LittleEndian.Uint64(padded[8:]), binary.LittleEndian.Uint64(padded[16:])}
	hi, lo := bits.Mul64(key[0]^0x9e3779b97f4a7c15, key[1]^bits.RotateLeft64(key[2], 21)^0xd6e8feb86659fd93)
	slot := int32((hi ^ lo) & uint64(len(p.keys)-1))
	if p.keys[slot] != key {
		p.addPending() // the old vector of the slot may be pending
		p.keys[slot] = key
		p.values[slot] = p.embed(p.vectors[int(slot)*len(p.words):][:len(p.words)], token)
	}
	v := p.values[slot]
	if v.rows > 0 {
		if len(p.pending) == cap(p.pending) {
			p.addPending()
		}
		p.pending = append(p.pending, slot)
	}
	return v
}

func (p *Predictor) addPending() {
	addRows(p.words, p.vectors, p.pending)
	p.pending = p.pending[:0]
}

func (p *Predictor) addGrams() {
	p.m.input.sum(p.grams, p.rows)
	p.rows = p.rows[:0]
}

// embed writes the sum of the rows of a token to vector.
func (p *Predictor) embed(vector []float32, token []byte) tokenValue {
	clear(vector)
	v := tokenValue{hash: hashToken(token)}
	d := p.m.dict
	id := d.find(token, v.hash)
	if d.isLabel(token, id) {
		v.rows = -1
		return v
	}
	var space [rowsAtOnce]int32
	rows := space[:0]
	if id >= 0 {
		rows = append(rows, int32(id))
	}
	if string(token) == endOfLine || d.args.MaxN <= 0 {
		p.m.input.sum(vector, rows)
		v.rows = int32(len(rows))
		return v
	}
	p.word = appendBounded(p.word[:0], token)
	for at := 0; at < len(p.word); {
		rows, at = d.charGrams(rows, p.word, at)
		p.m.input.sum(vector, rows)
		v.rows += int32(len(rows))
		rows = space[:0]
	}
	return v
}

// appendBounded appends a word between the characters that mark its bounds.
func appendBounded(dst, token []byte) []byte {
	dst = append(append(dst, '<'), token...)
	return append(dst, '>')
}

// output computes the logarithms of the scores. Those below the threshold become −Inf.
func (p *Predictor) output(threshold float32) {
	switch p.m.args.Loss {
	case HierarchicalSoftmax:
		p.descend(smoothLog(threshold))
		return
	case Softmax:
		p.m.output.product(p.scores, p.hidden)
		softmax(p.scores)
	default:
		p.m.output.product(p.scores, p.hidden)
		for i, x := range p.scores {
			p.scores[i] = sigmoid(x)
		}
	}
	for i, s := range p.scores {
		if s < threshold {
			p.scores[i] = float32(math.Inf(-1))
		} else {
			p.scores[i] = smoothLog(s)
		}
	}
}

// descend computes the scores of the tree from the root, which is the last node: children come before their parent.
func (p *Predictor) descend(threshold float32) {
	tree, labels := p.m.tree, len(p.scores)
	below := float32(math.Inf(-1))
	reach := p.reach
	reach[len(tree)-1] = 0
	for i := len(tree) - 1; i >= 0; i-- {
		if reach[i] < threshold {
			reach[i] = below
		}
		if i < labels {
			continue
		}
		left, right := below, below
		if reach[i] != below {
			f := p.m.output.dot(p.hidden, i-labels)
			f = float32(1 / (1 + float64(float32(math.Exp(float64(-f))))))
			left, right = reach[i]+smoothLog(1-f), reach[i]+smoothLog(f)
		}
		reach[tree[i].left], reach[tree[i].right] = left, right
	}
	copy(p.scores, reach)
}

func softmax(x []float32) {
	top, z := slices.Max(x), float32(0)
	for i, v := range x {
		x[i] = float32(math.Exp(float64(v - top)))
		z += x[i]
	}
	for i := range x {
		x[i] /= z
	}
}
