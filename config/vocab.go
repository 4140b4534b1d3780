package config

import "fmt"

// A vocabulary may be larger than the tokenizer's, for a better shape or for later tokens: by fewer than maxPadding
// tokens, to a multiple of vocabUnit. Published models are within these bounds.
const (
	vocabUnit  = 64
	maxPadding = 1024
)

// SetVocabulary derives model.vocab from the tokenizer of the data in dir, or checks that it fits the tokenizer,
// because rows of the embedding that no token reads are never trained. The vocabulary of an existing run, or of
// initial weights, does not change.
func (c *Config) SetVocabulary(tokens int, dir string) error {
	const key = "model.vocab"
	vocab := c.Model.Vocab
	if vocab == 0 {
		c.Derive(key, tokens, "the tokenizer of "+dir)
		return nil
	}
	free := !c.started && c.origins[key].From == ""
	p := Problem{Key: key, At: c.origins[key].Place(), Try: fmt.Sprintf("%s = %d, or remove %[1]s", key, tokens)}
	switch {
	case vocab < tokens:
		p.Message = fmt.Sprintf("%s = %d is smaller than the %d tokens of the tokenizer of %s", key, vocab, tokens, dir)
		return p
	case vocab > tokens && free && (vocab%vocabUnit != 0 || vocab-tokens >= maxPadding):
		p.Message = fmt.Sprintf("%s = %d, but the tokenizer of %s has %d tokens: the others would never be trained",
			key, vocab, dir, tokens)
		p.Try = fmt.Sprintf("%s = %d, or a multiple of %d that is fewer than %d above, such as %d",
			key, tokens, vocabUnit, maxPadding, (tokens/vocabUnit+1)*vocabUnit)
		return p
	case vocab > tokens && free:
		c.Remark(fmt.Sprintf("%s = %d pads the %d tokens of the tokenizer", key, vocab, tokens))
	}
	return nil
}
