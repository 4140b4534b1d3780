package tokenizer

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// matchers find special tokens: first some in text as it is, then those with Normalized in normalized text.
type matchers struct{ raw, normal matcher }

// add adds special token number i, whose normalized text is normal.
func (m *matchers) add(s *Special, normal []byte, i int) {
	if s.Normalized {
		m.normal.add(normal, i)
	} else {
		m.raw.add([]byte(s.Text), i)
	}
}

func (m *matchers) empty() bool { return len(m.raw.special)+len(m.normal.special) == 0 }

// matcher finds special tokens in a text.
type matcher struct {
	texts   interner
	special []int        // the special token of each text
	openers [256][]int   // lengths of the texts that start with a byte, longest first
	pairs   [1024]uint64 // bits of the first two bytes of the texts: most places in a text end here
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
	for second := range 256 {
		if len(text) == 1 || text[1] == byte(second) {
			pair := int(text[0])<<8 | second
			m.pairs[pair/64] |= 1 << (pair % 64)
		}
	}
}

// next finds the first special token at or after from, the longest of those that start there: number i, or -1.
func (m *matcher) next(text []byte, from int) (start, end, i int) {
	if len(m.special) == 0 {
		return 0, 0, -1
	}
	for at := from; at < len(text); at++ {
		if at+1 < len(text) {
			if pair := int(text[at])<<8 | int(text[at+1]); m.pairs[pair/64]>>(pair%64)&1 == 0 {
				continue
			}
		}
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

// EncodeSpecial encodes text in which the texts of all special tokens, such as "<|endoftext|>", represent those
// tokens. Use it only for trusted text; see [Encoder.EncodeSpecial].
func (t *Tokenizer) EncodeSpecial(text []byte) []uint32 {
	e := t.encoders.Get().(*Encoder)
	defer t.encoders.Put(e)
	return e.EncodeSpecial(nil, text)
}

// FindSpecial returns the name of a special token that text spells, or "". Those with Added do not count.
func (t *Tokenizer) FindSpecial(text []byte) string {
	for _, m := range []*matcher{&t.marked.raw, &t.marked.normal} {
		for from := 0; ; {
			_, end, i := m.next(text, from)
			if i < 0 {
				break
			}
			if s := &t.specials[i]; !s.Added {
				return s.Text
			}
			from = end
		}
	}
	return ""
}

// cut calls special for each special token but one that m finds in text, and between for the text between them, in
// order.
func (t *Tokenizer) cut(m *matcher, but int64, text []byte, special func(id uint32), between func(text []byte)) {
	done := 0
	for from := 0; ; {
		start, end, i := m.next(text, from)
		if i < 0 {
			break
		}
		s := &t.specials[i]
		from = end
		if int64(s.ID) == but || s.SingleWord && (endsWithWord(text[:start]) || startsWithWord(text[end:])) {
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
