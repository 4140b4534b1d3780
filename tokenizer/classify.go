package tokenizer

//go:generate go run ./gen

import "encoding/binary"

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// classify computes all masks except limit, eight bytes at a time. It compares all bytes of a word by additions whose
// carries stay within each byte, and gathers the eight top bits by a multiplication.
func classify(b *[blockSize]byte) (m masks) {
	for k := 0; k < blockSize; k += 8 {
		x := binary.LittleEndian.Uint64(b[k:])
		ascii := ^x & highs
		y := x &^ highs
		z := y | ' '*ones
		letters := (z + (0x80-'a')*ones) &^ (z + (0x7f-'z')*ones) & ascii
		digits := (y + (0x80-'0')*ones) &^ (y + (0x7f-'9')*ones) & ascii
		newlines := (equal(y, '\n') | equal(y, '\r')) & ascii
		blanks := equal(y, ' ') & ascii
		spaces := (y+(0x80-'\t')*ones)&^(y+(0x7f-'\r')*ones)&ascii&^newlines | blanks
		m.letter |= gather(letters) << k
		m.number |= gather(digits) << k
		m.space |= gather(spaces) << k
		m.blank |= gather(blanks) << k
		m.newline |= gather(newlines) << k
		m.apostrophe |= gather(equal(y, '\'')&ascii) << k
		m.foreign |= gather(x&highs) << k
	}
	return m
}

// equal sets the top bit of each byte of y (all below 0x80) that equals c.
func equal(y uint64, c byte) uint64 {
	return ^((y ^ uint64(c)*ones) + 0x7f*ones) & highs
}

// gather packs the top bits of the eight bytes, the only bits set, into one byte, lowest first.
func gather(x uint64) uint64 {
	return x >> 7 * 0x0102040810204080 >> 56
}
