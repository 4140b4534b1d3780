package dedup

//go:generate go run ./gen

// lanes is the number of hash functions in one call of minHash, which fit in the registers.
const lanes = 112

// minHashGeneric lowers each of the 112 minima to the smallest a·x + b (mod 2³²) over the n values at x.
func minHashGeneric(minima, a, b *[lanes]uint32, xs []uint32) {
	for _, x := range xs {
		for i := range minima {
			minima[i] = min(minima[i], a[i]*x+b[i])
		}
	}
}

// folded maps each byte to its normalised form.
var folded = func() (t [256]byte) {
	for c := range t {
		switch {
		case c >= 'A' && c <= 'Z':
			t[c] = byte(c) | 0x20
		case c >= 'a' && c <= 'z' || c >= 0x80:
			t[c] = byte(c)
		case c >= '0' && c <= '9':
			t[c] = '0'
		default:
			t[c] = ' '
		}
	}
	return t
}()

// normaliseGeneric folds whole blocks of 64 bytes of src into dst, and sets in masks, one number a block, the bits of
// the bytes that are part of words. It returns whether src had bytes above ASCII.
func normaliseGeneric(dst, src []byte, masks []uint64) (high bool) {
	var all byte
	for i := range masks {
		m := uint64(0)
		for j, c := range src[64*i : 64*i+64] {
			all |= c
			f := folded[c]
			dst[64*i+j] = f
			if f != ' ' {
				m |= 1 << j
			}
		}
		masks[i] = m
	}
	return all >= 0x80
}
