package tokenizer

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// class is the class of a character in pre-tokenizer patterns. Bytes of invalid UTF-8 are other.
type class uint8

const (
	other   class = iota // [^\s\p{L}\p{N}]
	letter               // \p{L}
	number               // \p{N}
	space                // \s without \r and \n
	newline              // \r, \n

	// Distinguished only for o200k; letter then means \p{Lm} and \p{Lo}.
	upper // \p{Lu}, \p{Lt}
	lower // \p{Ll}
	mark  // \p{M}
)

// runeClasses maps runes to classes in two steps: a page of 256 runes, then the rune in the page. Equal pages are
// stored once.
type runeClasses struct {
	ascii   [utf8.RuneSelf]class
	page    [(unicode.MaxRune + 1) >> 8]uint8
	classes [][256]class
}

// Tables are built on first use. That takes a millisecond, which programs that never tokenize should not spend.
var (
	classTable = sync.OnceValue(func() *runeClasses { return newClasses(false) })
	caseTable  = sync.OnceValue(func() *runeClasses { return newClasses(true) })
)

// newClasses builds the table with or without the classes that only o200k distinguishes.
func newClasses(cases bool) *runeClasses {
	flat := make([]class, unicode.MaxRune+1)
	set := func(table *unicode.RangeTable, c class) {
		for _, r := range table.R16 {
			for x := int(r.Lo); x <= int(r.Hi); x += int(r.Stride) {
				flat[x] = c
			}
		}
		for _, r := range table.R32 {
			for x := int(r.Lo); x <= int(r.Hi); x += int(r.Stride) {
				flat[x] = c
			}
		}
	}
	set(unicode.L, letter)
	set(unicode.N, number)
	set(unicode.White_Space, space)
	if cases {
		set(unicode.Lu, upper)
		set(unicode.Lt, upper)
		set(unicode.Ll, lower)
		set(unicode.M, mark)
	}
	flat['\r'], flat['\n'] = newline, newline

	t := &runeClasses{ascii: [utf8.RuneSelf]class(flat)}
	seen := map[[256]class]uint8{}
	for p := range t.page {
		page := [256]class(flat[p<<8:])
		i, ok := seen[page]
		if !ok {
			i = uint8(len(t.classes)) // about 90 distinct pages, or 130; TestClassTables would fail on overflow
			seen[page] = i
			t.classes = append(t.classes, page)
		}
		t.page[p] = i
	}
	return t
}

// at returns the class and the width in bytes of the character at text[i].
func (t *runeClasses) at(text []byte, i int) (class, int) {
	c := text[i]
	if c < utf8.RuneSelf {
		return t.ascii[c], 1
	}
	// Fast path for two-byte characters (Latin, Greek, Cyrillic, Hebrew, Arabic); c ≥ 0xc2 excludes overlong forms.
	if c >= 0xc2 && c < 0xe0 && i+1 < len(text) && text[i+1]&0xc0 == 0x80 {
		r := rune(c&0x1f)<<6 | rune(text[i+1]&0x3f)
		return t.classes[t.page[r>>8]][r&0xff], 2
	}
	r, n := utf8.DecodeRune(text[i:])
	if r == utf8.RuneError {
		return other, n
	}
	return t.classes[t.page[r>>8]][r&0xff], n
}
