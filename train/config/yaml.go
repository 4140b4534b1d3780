package config

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// YAML writes the config with every value and, beside it, where the value came from. Load reads it back to the same
// values.
func (c *Config) YAML() []byte {
	var b bytes.Buffer
	b.WriteString("# Every value of the run and where it came from. `anneal explain KEY` says what a key is.\n")
	var sections []string // that the last key stands in
	for _, k := range allKeys {
		path := strings.Split(k.Name, ".")
		last := len(path) - 1
		name, indent := path[last], strings.Repeat("  ", last)
		for depth, section := range path[:last] {
			if depth < len(sections) && sections[depth] == section {
				continue
			}
			if depth == 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", depth), section)
			sections = nil
		}
		sections = path[:last]
		value := c.value(k)
		if k.Type == "text" || k.list {
			value = quote(value)
		}
		fmt.Fprintf(&b, "%-34s # %s\n", indent+name+": "+value, printable(c.origins[k.Name].String()))
	}
	return b.Bytes()
}

var plain = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_/.-]*$`)

// quote leaves plain names bare; the words that YAML reads as something else than text are quoted.
func quote(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return strconv.Quote(s)
	}
	if plain.MatchString(s) {
		return s
	}
	return strconv.QuoteToASCII(s)
}

// printable keeps a comment on its line, whatever a file's name holds.
func printable(s string) string {
	q := strconv.Quote(s)
	if q[1:len(q)-1] != s {
		return q
	}
	return s
}
