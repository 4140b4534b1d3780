// Package nfc implements normalization form C of Unicode (UAX 15) exactly, for runs of marks of any length. It
// imports nothing of this module.
package nfc

import (
	"slices"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Append appends the normalization of text to dst. Invalid UTF-8 is copied unchanged.
func Append(dst, text []byte) []byte {
	if norm.NFC.IsNormal(text) {
		return append(dst, text...)
	}
	// The library splits runs of more than 30 marks with an extra character (the stream-safe format of UAX 15), which
	// neither tokenizers nor other libraries do.
	for len(text) > 0 {
		start, end := longMarks(text)
		dst = append(dst, norm.NFC.Bytes(text[:start])...)
		dst = composeMarks(dst, text[start:end])
		text = text[end:]
	}
	return dst
}

// mostMarks is the number of non-starters that the library surely accepts in a row; some decompose into several.
const mostMarks = 30 / 4

// longMarks finds a range with more marks in a row than the library accepts: from the starter before them to the next
// starter that does not compose with anything before it. Without one it returns an empty range at the end.
func longMarks(text []byte) (start, end int) {
	run := 0
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			start, run = i, 0
			i++
			continue
		}
		p := norm.NFC.Properties(text[i:])
		if p.BoundaryBefore() {
			start, run = i, 0
		} else if run++; run > mostMarks {
			for i < len(text) && !norm.NFC.Properties(text[i:]).BoundaryBefore() {
				i += width(text[i:])
			}
			return start, i
		}
		i += width(text[i:])
	}
	return len(text), len(text)
}

func width(text []byte) int {
	_, n := utf8.DecodeRune(text)
	return n
}

// combining is a character of a decomposition with its combining class.
type combining struct {
	r     rune
	class uint8
}

// composeMarks appends the normalization of text, a starter and what follows it, by the definition: decompose, sort
// marks by class, compose each with the last starter unless a mark of equal or higher class is between them.
func composeMarks(dst, text []byte) []byte {
	var all []combining
	for len(text) > 0 {
		n := width(text)
		if r, _ := utf8.DecodeRune(text); r == utf8.RuneError && n == 1 { // not UTF-8
			dst = append(appendComposed(dst, all), text[0])
			all, text = all[:0], text[1:]
			continue
		}
		for _, r := range string(norm.NFD.Append(nil, text[:n]...)) {
			all = append(all, combining{r, norm.NFD.PropertiesString(string(r)).CCC()})
		}
		text = text[n:]
	}
	return appendComposed(dst, all)
}

func appendComposed(dst []byte, all []combining) []byte {
	for i := 0; i < len(all); {
		k := i
		for k < len(all) && all[k].class > 0 {
			k++
		}
		slices.SortStableFunc(all[i:k], func(a, b combining) int { return int(a.class) - int(b.class) })
		i = k + 1
	}
	kept, starter := all[:0], -1
	last := uint8(0) // class of the last kept character after the starter
	for _, c := range all {
		if starter >= 0 && (last < c.class || starter == len(kept)-1) {
			if both, ok := compose(kept[starter].r, c.r); ok {
				kept[starter].r = both
				continue
			}
		}
		kept = append(kept, c)
		if last = c.class; c.class == 0 {
			starter = len(kept) - 1
		}
	}
	for _, c := range kept {
		dst = utf8.AppendRune(dst, c.r)
	}
	return dst
}

// compose returns the composition of a and b, if there is one.
func compose(a, b rune) (rune, bool) {
	s := norm.NFC.String(string(a) + string(b))
	r, n := utf8.DecodeRuneInString(s)
	return r, n == len(s)
}
