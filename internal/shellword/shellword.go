// Package shellword writes command lines for people to copy.
package shellword

import "strings"

// Command quotes and joins words into a line that a shell splits into the same words.
func Command(words ...string) string {
	line := make([]string, len(words))
	for i, w := range words {
		line[i] = quote(w)
	}
	return strings.Join(line, " ")
}

// quote quotes a word if a shell would not read it unchanged.
func quote(w string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("_-./=:,+@%^", r)
	}
	if w != "" && strings.IndexFunc(w, func(r rune) bool { return !plain(r) }) < 0 {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
