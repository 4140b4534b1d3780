package config

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// The first and the last line of a config that YAML wrote. Load refuses a config that has the first line but not the
// last, because the missing keys would silently become defaults.
const (
	firstLine = "# All values of the run, and where each came from. `anneal explain KEY` says what a key is."
	lastLine  = "# This is the last line: a file without it was cut off."
)

// YAML writes the config with every value and, beside it, where the value came from. Load reads it back to the same
// values.
func (c *Config) YAML() []byte {
	var b bytes.Buffer
	b.WriteString(firstLine + "\n")
	open := outline{b: &b}
	for _, k := range allKeys {
		name, indent := open.key(k.Name)
		value := c.value(k)
		if k.Type == "text" || k.list {
			value = quote(value)
		}
		fmt.Fprintf(&b, "%-34s # %s\n", indent+name+": "+value, printable(c.origins[k.Name].String()))
	}
	b.WriteString("\n" + lastLine + "\n")
	return b.Bytes()
}

// An outline writes keys of a config in order, each below its section, whose name it writes once.
type outline struct {
	b    *bytes.Buffer
	open []string // the sections of the last key
}

// key opens the sections of a key, and returns its last name and the indentation of its line.
func (o *outline) key(path string) (name, indent string) {
	names := strings.Split(path, ".")
	last := len(names) - 1
	for depth, section := range names[:last] {
		if depth < len(o.open) && o.open[depth] == section {
			continue
		}
		if depth == 0 {
			o.b.WriteByte('\n')
		}
		fmt.Fprintf(o.b, "%s%s:\n", strings.Repeat("  ", depth), section)
		o.open = nil
	}
	o.open = names[:last]
	return names[last], strings.Repeat("  ", last)
}

// cutOff reports whether text is a config that YAML wrote and whose end is missing.
func cutOff(text []byte) bool {
	return bytes.Contains(text, []byte(firstLine+"\n")) && !bytes.Contains(text, []byte("\n"+lastLine))
}

var plain = regexp.MustCompile(`^[A-Za-z/][A-Za-z0-9_/.-]*$`)

// quote leaves plain names unquoted, and quotes words that YAML does not read as text.
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

// printable keeps a comment on its line, whatever characters a file's name has.
func printable(s string) string {
	q := strconv.Quote(s)
	if q[1:len(q)-1] != s {
		return q
	}
	return s
}
