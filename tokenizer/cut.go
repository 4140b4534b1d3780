package tokenizer

import (
	"bytes"
	"errors"
)

// Cut returns the result of [Train] for a smaller vocabulary of size tokens from the same text: its merges are the
// first merges of t. It works only for tokenizers made by Train. If t has no more than size tokens, the result is t.
func (t *Tokenizer) Cut(size int) (*Tokenizer, error) {
	if size >= t.VocabSize() {
		return t, nil
	}
	if t.nfc || len(t.before)+len(t.after) > 0 {
		return nil, errNotTrained
	}
	var specials []string
	for i, s := range t.specials {
		if s != (Special{ID: uint32(len(t.byID) - len(t.specials) + i), Text: s.Text}) {
			return nil, errNotTrained
		}
		specials = append(specials, s.Text)
	}
	want := size - 256 - len(specials)
	if want < 0 {
		return nil, errors.New("a vocabulary must hold at least the 256 bytes and the special tokens")
	}
	vocab := byteVocab()
	for i := range 256 {
		if !bytes.Equal(t.Token(uint32(i)), vocab.at(i)) {
			return nil, errNotTrained
		}
	}
	var kept []merge
	for _, m := range t.merges {
		if vocab.len() == 256+want {
			break
		}
		if id := vocab.add(t.Token(m.id)); id != int(m.id) {
			return nil, errNotTrained
		}
		kept = append(kept, m)
	}
	return assemble(t.pattern, vocab, kept, specials)
}

var errNotTrained = errors.New("only a vocabulary trained by anneal can be cut: its ids are in the order of its merges")
