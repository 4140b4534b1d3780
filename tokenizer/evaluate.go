package tokenizer

import (
	"iter"
	"unicode"
	"unicode/utf8"
)

// Stats says how well a tokenizer fits a text.
type Stats struct {
	Documents, Bytes, Tokens, Words int64

	BytesPerToken  float64 // compression: more is better
	Fertility      float64 // tokens per word; words are what white space separates
	ContinuedWords float64 // share of words that hold the start of a token behind their first byte
}

// Evaluate encodes all documents and measures the outcome. It stops at the first error of docs.
func Evaluate(t *Tokenizer, docs iter.Seq2[[]byte, error]) (Stats, error) {
	var s Stats
	var continued int64
	e := t.NewEncoder()
	var ids []uint32
	for doc, err := range docs {
		if err != nil {
			return Stats{}, err
		}
		s.Documents++
		s.Bytes += int64(len(doc))
		if t.nfc {
			doc = t.normalize(nil, doc)
		}
		ids = e.encode(ids[:0], doc)
		s.Tokens += int64(len(ids))
		words, cut := t.countWords(doc, ids)
		s.Words += words
		continued += cut
	}
	s.BytesPerToken = ratio(s.Bytes, s.Tokens)
	s.Fertility = ratio(s.Tokens, s.Words)
	s.ContinuedWords = ratio(continued, s.Words)
	return s, nil
}

// countWords counts the words of text and those of them in which a token of ids starts behind the first byte.
func (t *Tokenizer) countWords(text []byte, ids []uint32) (words, continued int64) {
	token, next := 0, 0 // the first token that starts at or behind the place in hand, and where
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
