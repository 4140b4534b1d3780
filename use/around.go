package use

import (
	"bytes"

	"anneal/internal/fileio"
	"anneal/tokenizer"
)

// placeAround has the tokenizer put around a text what the model knows there. In training every document follows
// an end-of-text token, so a text starts with it. A model that was imported keeps what its own tokenizer does.
func (r *Trained) placeAround() error {
	if r.Imported {
		return nil
	}
	eot, err := r.Tokenizer.EndOfText()
	if err != nil {
		return nil // documents without an end follow nothing; open has looked at other errors
	}
	return r.Tokenizer.SetAround([]uint32{eot}, nil)
}

// Around returns the special tokens that [Trained.Generate] puts before and after a prompt, by their texts. An
// export puts the same ones there.
func (r *Trained) Around() (before, after []string) {
	b, a := r.Tokenizer.Around()
	return r.texts(b), r.texts(a)
}

func (r *Trained) texts(ids []uint32) []string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = string(r.Tokenizer.Token(id))
	}
	return list
}

// exportedTokenizer is the tokenizer.json of an export. That of an imported model already says what is around a text,
// and comes back to the byte.
func (r *Trained) exportedTokenizer() ([]byte, error) {
	if r.Imported {
		return fileio.ReadSmall(r.TokenizerPath(), tokenizer.MaxFile)
	}
	var text bytes.Buffer
	_, err := r.Tokenizer.WriteTo(&text)
	return text.Bytes(), err
}
