package use

import (
	"bytes"

	"anneal/internal/fileio"
	"anneal/tokenizer"
)

// placeAround makes the tokenizer put the tokens around a text that the model has seen there in training. In training
// every document follows an end-of-text token, so a text starts with it. An imported model keeps the tokens of its own
// tokenizer.
func (r *Trained) placeAround() error {
	if r.Imported {
		return nil
	}
	eot, err := r.Tokenizer.EndOfText()
	if err != nil {
		return nil // without an end-of-text token, nothing precedes documents; open has checked other errors
	}
	return r.Tokenizer.SetAround([]uint32{eot}, nil)
}

// Around returns the texts of the special tokens that [Trained.Generate] puts before and after a prompt. An export
// uses the same ones.
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

// exportedTokenizer returns the tokenizer.json of an export. An imported model's file already defines the tokens
// around a text, and is exported unchanged, byte for byte.
func (r *Trained) exportedTokenizer() ([]byte, error) {
	if r.Imported {
		return fileio.ReadSmall(r.TokenizerPath(), tokenizer.MaxFile)
	}
	var text bytes.Buffer
	_, err := r.Tokenizer.WriteTo(&text)
	return text.Bytes(), err
}
