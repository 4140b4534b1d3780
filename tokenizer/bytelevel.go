package tokenizer

import "unicode/utf8"

// The byte-level alphabet of GPT-2 represents every byte as a printable character: the bytes 33–126, 161–172 and
// 174–255 as the code point of the same value, the other 68 in order as U+0100, U+0101, … (a space is Ġ).

var (
	byteRune [256]rune    // byte → character
	runeByte [0x144]int16 // character → byte, -1: none
	// the bytes in the order of their characters, which is the order of ids in a trained vocabulary
	byteOrder [256]byte
)

func init() {
	for i := range runeByte {
		runeByte[i] = -1
	}
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if b <= 32 || b >= 127 && b <= 160 || b == 173 {
			r = next
			next++
		}
		byteRune[b] = r
		runeByte[r] = int16(b)
	}
	n := 0
	for _, b := range runeByte {
		if b >= 0 {
			byteOrder[n] = byte(b)
			n++
		}
	}
}

// appendByteLevel appends token in the byte-level alphabet.
func appendByteLevel(dst, token []byte) []byte {
	for _, b := range token {
		dst = utf8.AppendRune(dst, byteRune[b])
	}
	return dst
}

// appendBytes appends the bytes that s represents in the byte-level alphabet; it returns false if s has another
// character.
func appendBytes(dst []byte, s []byte) ([]byte, bool) {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRune(s[i:])
		if r >= rune(len(runeByte)) || runeByte[r] < 0 {
			return dst, false
		}
		dst = append(dst, byte(runeByte[r]))
		i += n
	}
	return dst, true
}

// ByteLevel returns an ordinary token in the byte-level alphabet, its form in files; "" if the id has no ordinary
// token.
func (t *Tokenizer) ByteLevel(id uint32) string {
	if int64(id) >= int64(len(t.byID)) || t.byID[id] <= 0 {
		return ""
	}
	return string(appendByteLevel(nil, t.Token(id)))
}
