package tokenizer

import (
	"cmp"
	"iter"
	"math/bits"
	"slices"
	"unicode"
	"unicode/utf8"
)

// Stats measure how well a tokenizer fits a text.
type Stats struct {
	Documents  int64 `json:"documents"`
	Bytes      int64 `json:"bytes"`
	Characters int64 `json:"characters"`
	Words      int64 `json:"words"` // words are separated by white space
	Tokens     int64 `json:"tokens"`

	BytesPerToken      float64 `json:"bytes_per_token"`      // compression: higher is better
	CharactersPerToken float64 `json:"characters_per_token"` // likewise
	// tokens per word; useless for languages without spaces between words
	Fertility      float64 `json:"fertility"`
	ContinuedWords float64 `json:"continued_words"` // share of words in which a token starts after the first byte
	// share of one-byte tokens, which represent text unknown to the vocabulary
	SingleByteTokens float64 `json:"single_byte_tokens"`
	Coverage         float64 `json:"coverage"` // share of the ordinary tokens that occur
}

// Group is a part of the text with its Stats.
type Group struct {
	Name string `json:"name"`
	Stats
	// Parity is the bytes per token of the best group, divided by those of this group. The same content has different
	// byte lengths in different languages; only parallel text compares the tokens for the same content.
	Parity float64 `json:"parity"`
}

// Evaluator measures a tokenizer on documents in groups. It must be used from one goroutine.
type Evaluator struct {
	enc    *Encoder
	total  counts
	groups map[string]*counts
	ids    []uint32
	text   []byte
}

// counts accumulates the input of Stats.
type counts struct {
	Stats
	continued, single int64
	seen              []uint64 // one bit per id
}

// MaxGroups is the largest number of groups of an [Evaluator]; documents of further groups count as "(others)".
const MaxGroups = 1000

// NewEvaluator returns an empty Evaluator.
func (t *Tokenizer) NewEvaluator() *Evaluator {
	return &Evaluator{enc: t.NewEncoder(), groups: map[string]*counts{}}
}

// Add encodes a document of a group.
func (e *Evaluator) Add(group string, doc []byte) {
	g := e.groups[group]
	if g == nil && len(e.groups) >= MaxGroups {
		group = "(others)"
		g = e.groups[group]
	}
	if g == nil {
		g = &counts{}
		e.groups[group] = g
	}
	t := e.enc.t
	size := int64(len(doc))
	if t.nfc {
		e.text = t.normalize(e.text[:0], doc)
		doc = e.text
	}
	e.ids = e.enc.encode(e.ids[:0], doc)
	words, continued := t.countWords(doc, e.ids)
	one := counts{continued: continued, Stats: Stats{
		Documents: 1, Bytes: size, Characters: int64(utf8.RuneCount(doc)), Words: words, Tokens: int64(len(e.ids)),
	}}
	for _, c := range []*counts{g, &e.total} {
		if c.seen == nil {
			c.seen = make([]uint64, len(t.byID)/64+1)
		}
		for _, id := range e.ids {
			c.seen[id>>6] |= 1 << (id & 63)
		}
	}
	for _, id := range e.ids {
		if len(t.Token(id)) == 1 {
			one.single++
		}
	}
	g.add(&one)
	e.total.add(&one)
}

func (c *counts) add(o *counts) {
	c.Documents += o.Documents
	c.Bytes += o.Bytes
	c.Characters += o.Characters
	c.Words += o.Words
	c.Tokens += o.Tokens
	c.continued += o.continued
	c.single += o.single
}

// stats computes the ratios; ordinary is the number of ordinary tokens.
func (c *counts) stats(ordinary int) Stats {
	s := c.Stats
	s.BytesPerToken = ratio(s.Bytes, s.Tokens)
	s.CharactersPerToken = ratio(s.Characters, s.Tokens)
	s.Fertility = ratio(s.Tokens, s.Words)
	s.ContinuedWords = ratio(c.continued, s.Words)
	s.SingleByteTokens = ratio(c.single, s.Tokens)
	seen := 0
	for _, w := range c.seen {
		seen += bits.OnesCount64(w)
	}
	s.Coverage = ratio(int64(seen), int64(ordinary))
	return s
}

// Total returns the Stats of all documents together.
func (e *Evaluator) Total() Stats { return e.total.stats(len(e.enc.t.ids)) }

// Groups returns the groups in descending order of bytes.
func (e *Evaluator) Groups() []Group {
	var all []Group
	best := 0.0
	for name, c := range e.groups {
		s := c.stats(len(e.enc.t.ids))
		best = max(best, s.BytesPerToken)
		all = append(all, Group{Name: name, Stats: s})
	}
	for i := range all {
		if all[i].Tokens > 0 {
			all[i].Parity = best / all[i].BytesPerToken
		}
	}
	slices.SortFunc(all, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// Evaluate encodes all documents and returns their Stats. It stops at the first error of docs.
func Evaluate(t *Tokenizer, docs iter.Seq2[[]byte, error]) (Stats, error) {
	e := t.NewEvaluator()
	for doc, err := range docs {
		if err != nil {
			return Stats{}, err
		}
		e.Add("", doc)
	}
	return e.Total(), nil
}

// countWords counts the words of text, and those in which a token of ids starts after the first byte.
func (t *Tokenizer) countWords(text []byte, ids []uint32) (words, continued int64) {
	token, next := 0, 0 // the first token that starts at or after the current position, and its start
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if unicode.IsSpace(r) {
			i += n
			continue
		}
		start := i
		for i < len(text) {
			r, n := utf8.DecodeRune(text[i:])
			if unicode.IsSpace(r) {
				break
			}
			i += n
		}
		words++
		for token < len(ids) && next <= start {
			next += len(t.Token(ids[token]))
			token++
		}
		if next < i {
			continued++
		}
	}
	return words, continued
}

func ratio(a, b int64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
