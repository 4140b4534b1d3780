package prepare

import (
	"encoding/hex"
	"path/filepath"

	"anneal/dataset"
	"anneal/tokenizer"
)

// OpenTokenizer reads the tokenizer beside a data set and checks that the data set was built with it. The data set
// alone decides which token ends a text.
func OpenTokenizer(d *dataset.Dataset) (*tokenizer.Tokenizer, error) {
	path := filepath.Join(d.Dir, "tokenizer.json")
	tok, err := tokenizer.Load(path)
	if err != nil {
		return nil, err
	}
	// Where the token is not there, it is another tokenizer, as RequireTokenizer says.
	_ = tok.SetEndOfText(string(tok.Token(d.Manifest.Tokenizer.EOT)))
	return tok, d.RequireTokenizer(DatasetTokenizer(tok, path))
}

// DatasetTokenizer describes a tokenizer in the form in which data sets identify theirs. A tokenizer without an
// end-of-text token cannot delimit documents; its EOT is then out of range, which package dataset rejects.
func DatasetTokenizer(tok *tokenizer.Tokenizer, path string) dataset.Tokenizer {
	d := dataset.Tokenizer{Path: path, Vocab: tok.VocabSize(), EOT: uint32(tok.VocabSize())}
	if eot, err := tok.EndOfText(); err == nil {
		d.EOT = eot
	}
	hex.Decode(d.SHA256[:], []byte(tok.Hash()))
	return d
}

// byteLengths returns the number of text bytes of each token: 0 for special tokens and for padding of the vocabulary.
func byteLengths(tok *tokenizer.Tokenizer, vocab int) []int32 {
	n := make([]int32, vocab)
	for id := range min(vocab, tok.VocabSize()) {
		n[id] = int32(len(tok.Token(uint32(id))))
	}
	for _, s := range tok.Specials() {
		if int(s.ID) < vocab && !s.Added {
			n[s.ID] = 0
		}
	}
	if eot, err := tok.EndOfText(); err == nil && int(eot) < vocab {
		n[eot] = 0
	}
	return n
}
