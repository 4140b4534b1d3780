package tokenizer

import (
	"maps"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"
)

// scripts maps every character to its script, as an index into scriptNames; 0 for characters without one, such as
// digits.
var scripts = sync.OnceValue(func() []uint8 {
	of := make([]uint8, unicode.MaxRune+1)
	for i, name := range scriptNames() {
		if name == "" || name == "Common" || name == "Inherited" {
			continue
		}
		table := unicode.Scripts[name]
		for _, r := range table.R16 {
			for x := int(r.Lo); x <= int(r.Hi); x += int(r.Stride) {
				of[x] = uint8(i)
			}
		}
		for _, r := range table.R32 {
			for x := int(r.Lo); x <= int(r.Hi); x += int(r.Stride) {
				of[x] = uint8(i)
			}
		}
	}
	return of
})

// scriptNames lists the names of Unicode scripts, in order, after "". There are about 170.
var scriptNames = sync.OnceValue(func() []string {
	return append([]string{""}, slices.Sorted(maps.Keys(unicode.Scripts))...)
})

// Script returns the name of the Unicode script of most letters in text, the alphabetically first if there is a tie;
// "" if text has no letters.
func Script(text []byte) string {
	of, names := scripts(), scriptNames()
	var counts [256]int
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		i += n
		counts[of[r]]++
	}
	best := 0
	for s := 1; s < len(names); s++ {
		if counts[s] > 0 && (best == 0 || counts[s] > counts[best]) {
			best = s
		}
	}
	return names[best]
}
