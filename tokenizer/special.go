package tokenizer

// EncodeSpecial encodes text in which the texts of special tokens, such as "<|endoftext|>", stand for those tokens. Of
// two that start at the same place the longer one counts. Use it for text you wrote yourself; text from outside belongs
// in [Encoder.Encode].
func (t *Tokenizer) EncodeSpecial(text []byte) []uint32 {
	e := t.encoders.Get().(*Encoder)
	defer t.encoders.Put(e)
	var ids []uint32
	for {
		at, s := t.nextSpecial(text)
		if s == nil {
			return e.Encode(ids, text)
		}
		ids = e.Encode(ids, text[:at])
		ids = append(ids, s.ID)
		text = text[at+len(s.Text):]
	}
}

// nextSpecial finds the first special token in text, the longest of those that start there.
func (t *Tokenizer) nextSpecial(text []byte) (at int, found *Special) {
	for i, b := range text {
		for _, n := range t.openers[b] {
			if i+n > len(text) {
				continue
			}
			if k := t.texts.find(text[i : i+n]); k >= 0 {
				return i, &t.specials[k]
			}
		}
	}
	return 0, nil
}
