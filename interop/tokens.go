package interop

import (
	"errors"
	"slices"

	"anneal/hf"
	"anneal/tokenizer"
)

// Tokens returns the special tokens at the start and the end of a text. If nothing else is put at the start, it is the
// end-of-text token.
func Tokens(tok *tokenizer.Tokenizer) hf.Tokens {
	t := hf.Tokens{BOS: -1, Pad: -1}
	if eot, err := tok.EndOfText(); err == nil {
		t.BOS, t.EOS = int(eot), []int{int(eot)}
	}
	if before, _ := tok.Around(); len(before) > 0 {
		t.BOS = int(before[0])
	}
	return t
}

// ImportedTokens returns the special tokens of the model in a directory, as far as its tokenizer t has them. The first
// end of a text is that of t.
func ImportedTokens(t *tokenizer.Tokenizer, src string) (hf.Tokens, error) {
	c, err := hf.ReadConfig(src)
	if err != nil {
		return hf.Tokens{}, err
	}
	from, err := hf.SpecialTokens(src, c)
	if err != nil {
		return from, err
	}
	special := map[int]bool{}
	for _, s := range t.Specials() {
		special[int(s.ID)] = true
	}
	is := hf.Tokens{BOS: -1, Pad: -1}
	if special[from.BOS] {
		is.BOS = from.BOS
	}
	if special[from.Pad] {
		is.Pad = from.Pad
	}
	for _, id := range append(Tokens(t).EOS, from.EOS...) {
		if special[id] && !slices.Contains(is.EOS, id) {
			is.EOS = append(is.EOS, id)
		}
	}
	return is, nil
}

// NameEndOfText tells the tokenizer of a model in a directory which token ends a text. A model without such a token is
// not an error: it was trained on texts that never end.
func NameEndOfText(t *tokenizer.Tokenizer, src, token string) error {
	if token != "" {
		return t.SetEndOfText(token)
	}
	_, err := t.EndOfText()
	if err == nil || errors.Is(err, tokenizer.ErrNoEndOfText) {
		return nil
	}
	if c, err := hf.ReadConfig(src); err == nil {
		if ids := hf.EndOfText(c); len(ids) == 1 && t.SetEndOfText(string(t.Token(uint32(ids[0])))) == nil {
			return nil
		}
	}
	return err
}
