package tokenizer

import "unicode/utf8"

// Decode appends the bytes of the tokens ids to dst, special tokens by their text. An id without a token becomes
// U+FFFD.
func (t *Tokenizer) Decode(dst []byte, ids []uint32) []byte {
	for _, id := range ids {
		if b := t.Token(id); b != nil {
			dst = append(dst, b...)
		} else {
			dst = utf8.AppendRune(dst, utf8.RuneError)
		}
	}
	return dst
}

// StreamDecoder decodes tokens as they are generated. It holds back bytes until they form whole characters. Bytes
// that can no longer become a character turn into U+FFFD: one for each byte, but one for all bytes of a character
// that breaks off, as in other libraries (Unicode 15, §3.9, "maximal subparts").
type StreamDecoder struct {
	t    *Tokenizer
	rest []byte
}

// NewStreamDecoder returns a decoder for a new text.
func (t *Tokenizer) NewStreamDecoder() *StreamDecoder { return &StreamDecoder{t: t} }

// Next adds a token and returns the characters completed by it.
func (d *StreamDecoder) Next(id uint32) string {
	d.rest = d.t.Decode(d.rest, []uint32{id})
	var out []byte
	i := 0
	for i < len(d.rest) && utf8.FullRune(d.rest[i:]) {
		r, n := utf8.DecodeRune(d.rest[i:])
		if r == utf8.RuneError && n == 1 {
			for !utf8.FullRune(d.rest[i:i+n]) && !utf8.FullRune(d.rest[i:i+n+1]) {
				n++
			}
		}
		out = utf8.AppendRune(out, r)
		i += n
	}
	d.rest = append(d.rest[:0], d.rest[i:]...)
	return string(out)
}

// Flush ends the text and returns the bytes held back, an incomplete character as U+FFFD.
func (d *StreamDecoder) Flush() string {
	if len(d.rest) == 0 {
		return ""
	}
	d.rest = d.rest[:0]
	return string(utf8.RuneError)
}
