package tokenizer

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// matcher finds special tokens in a text.
type matcher struct {
	texts   interner
	special []int      // the special token of each text
	openers [256][]int // lengths of the texts that start with a byte, longest first
}

// add adds the text of special token number i.
func (m *matcher) add(text []byte, i int) {
	if m.texts.add(text) < len(m.special) {
		return // equal to another one after normalization: the first one counts
	}
	m.special = append(m.special, i)
	lengths := &m.openers[text[0]]
	if k, found := slices.BinarySearchFunc(*lengths, len(text), func(a, b int) int { return b - a }); !found {
		*lengths = slices.Insert(*lengths, k, len(text))
	}
}

// next finds the first special token at or after from, the longest of those that start there: number i, or -1.
func (m *matcher) next(text []byte, from int) (start, end, i int) {
	if len(m.special) == 0 {
		return 0, 0, -1
	}
	for at := from; at < len(text); at++ {
		for _, n := range m.openers[text[at]] {
			if at+n > len(text) {
				continue
			}
			if k := m.texts.find(text[at : at+n]); k >= 0 {
				return at, at + n, m.special[k]
			}
		}
	}
	return 0, 0, -1
}

// EncodeSpecial encodes text in which the texts of special tokens, such as "<|endoftext|>", represent those tokens.
// Of two that start at the same place the longer one counts. Use it only for trusted text; encode text from outside
// with [Encoder.Encode].
func (t *Tokenizer) EncodeSpecial(text []byte) []uint32 {
	e := t.encoders.Get().(*Encoder)
	defer t.encoders.Put(e)
	var ids []uint32
	t.cut(&t.raw, text, func(id uint32) { ids = append(ids, id) }, func(text []byte) {
		if t.nfc {
			text = t.normalize(nil, text)
		}
		t.cut(&t.normal, text, func(id uint32) { ids = append(ids, id) },
			func(text []byte) { ids = e.encode(ids, text) })
	})
	return ids
}

// cut calls special for each special token that m finds in text, and between for the text between them, in order.
func (t *Tokenizer) cut(m *matcher, text []byte, special func(id uint32), between func(text []byte)) {
	done := 0
	for from := 0; ; {
		start, end, i := m.next(text, from)
		if i < 0 {
			break
		}
		s := &t.specials[i]
		from = end
		if s.SingleWord && (endsWithWord(text[:start]) || startsWithWord(text[end:])) {
			continue
		}
		if s.LStrip {
			for start > done {
				r, n := utf8.DecodeLastRune(text[done:start])
				if !unicode.IsSpace(r) {
					break
				}
				start -= n
			}
		}
		if s.RStrip {
			for end < len(text) {
				r, n := utf8.DecodeRune(text[end:])
				if !unicode.IsSpace(r) {
					break
				}
				end += n
			}
		}
		if start > done {
			between(text[done:start])
		}
		special(s.ID)
		done = end
	}
	if done < len(text) {
		between(text[done:])
	}
}

func endsWithWord(text []byte) bool {
	r, n := utf8.DecodeLastRune(text)
	return n > 0 && isWord(r)
}

func startsWithWord(text []byte) bool {
	r, n := utf8.DecodeRune(text)
	return n > 0 && isWord(r)
}

// isWord is \w of Unicode regular expressions (UTS 18): letters and letter-like characters, marks, digits,
// connectors, joiners.
func isWord(r rune) bool {
	return r != utf8.RuneError && unicode.In(r, unicode.L, unicode.Nl, unicode.Other_Alphabetic, unicode.M, unicode.Nd,
		unicode.Pc, unicode.Join_Control)
}
