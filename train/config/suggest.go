package config

import (
	"fmt"
	"strings"
)

// unknownKey names the nearest key: one of the same name in another section, or one a few letters away.
func unknownKey(name, at string) Problem {
	p := Problem{Key: name, Message: fmt.Sprintf("unknown key %s", name), At: at}
	leaf := name[strings.LastIndexByte(name, '.')+1:]
	var names []string
	for _, k := range allKeys {
		if section, _, ok := strings.Cut(k.Name, "."); ok && !strings.Contains(name, ".") {
			names = append(names, section)
		}
		if strings.HasSuffix(k.Name, "."+leaf) || k.Name == leaf {
			p.Try = k.Name
			return p
		}
		names = append(names, k.Name)
	}
	if near := nearest(name, names); near != "" {
		p.Try = near
	} else {
		p.Try = "`anneal explain` for the list of keys"
	}
	return p
}

// example is what to try in place of a text that is no value of the key, if its type does not say so already.
func (k Key) example() string {
	switch {
	case k.amount || k.Type == "true or false":
		return ""
	case k.Rule != "":
		return "leaving it out: " + k.Rule
	}
	return k.Name + " = " + k.Default
}

// nearest returns the candidate with the least edit distance to name, or "" if none is near enough to be meant.
func nearest(name string, candidates []string) string {
	best, at := "", max(2, len(name)/4)+1
	for _, c := range candidates {
		if d := editDistance(name, c); d < at {
			best, at = c, d
		}
	}
	return best
}

// editDistance counts insertions, deletions, replacements and swaps of neighbours between a and b.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > 256 {
		return len(x) // no key is so long: nothing is near
	}
	var before []int // two rows up, for swaps
	prev := make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range x {
		row := make([]int, len(y)+1)
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			row[j+1] = min(prev[j]+cost, prev[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, prev = prev, row
	}
	return prev[len(y)]
}
