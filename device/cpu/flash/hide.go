package flash

import "anneal/tensor"

// hide sets scores of hidden keys to −Inf: queries of panel p, columns 0…width of s [rows, ld], and keys in rows lo…
// of a tile.
func hide[T tensor.Number](s []T, ld, rows, lo int, t *keyTile, p *panel, width int) {
	ninf := negInf[T]()
	var nothing [64]T // a hidden row: copying is faster than filling
	for c := range width {
		nothing[c] = ninf
	}
	fill := func(line []T) { copy(line, nothing[:]) }
	for i := range t.runs {
		k := &t.runs[i]
		for r := max(k.at, lo); r < min(k.at+k.Count, lo+rows); r++ {
			key := k.First + (r-k.at)*k.Step
			line := s[(r-lo)*ld:][:width]
			fill(line[:min(width, count(p.Strip, key+k.Near-1))]) // queries before the key, or too near
			if k.Far <= p.last-key {
				fill(line[count(p.Strip, key+k.Far-1):])
			}
		}
	}
	for r := max(t.keys-lo, 0); r < rows; r++ {
		fill(s[r*ld:][:width])
	}
	for c := 0; p.common > 0 && c < p.Count; c++ {
		first := int(p.starts[p.First+c*p.Step])
		for i := range t.runs {
			k := &t.runs[i]
			for r := max(k.at, lo); r < min(k.at+min(k.Count, count(k.Strip, first-1)), lo+rows); r++ {
				s[(r-lo)*ld+c] = ninf
			}
		}
	}
}
