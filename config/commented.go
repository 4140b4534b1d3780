package config

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// A Line is a key of a config for readers, with a comment on its value.
type Line struct{ Key, Value, Comment string }

// Commented returns a config file of these values, in the order of Keys, each below its comment.
func Commented(list []Line) []byte {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Line) int { return keyIndex[a.Key] - keyIndex[b.Key] })
	var b bytes.Buffer
	open := outline{b: &b}
	for _, l := range list {
		name, indent := open.key(l.Key)
		for _, line := range folded(l.Comment, 98-len(indent)) {
			fmt.Fprintf(&b, "%s# %s\n", indent, line)
		}
		value := l.Value
		if k := allKeys[keyIndex[l.Key]]; k.Type == "text" || k.list {
			value = quote(value)
		}
		fmt.Fprintf(&b, "%s%s: %s\n", indent, name, value)
	}
	return b.Bytes()
}

// folded breaks a text into lines of limited length, at spaces.
func folded(text string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
