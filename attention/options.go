package attention

import (
	"fmt"
	"strconv"
	"strings"
)

// option is a number that a pattern's text may give.
type option struct {
	name  string
	to    *int
	least int
}

// largest is the most that an option may be; products of two stay within 64 bits.
const largest = 1 << 30

// read sets options from their texts, in order or by name. What is left out stays as it is.
func read(pattern string, texts []string, options ...option) error {
	given := map[string]bool{}
	for i, t := range texts {
		name, value, named := strings.Cut(t, "=")
		switch {
		case !named && i >= len(options):
			return wrong(pattern, options, "too many options: it has %s", known(options))
		case !named:
			name, value = options[i].name, t
		}
		name = strings.TrimSpace(name)
		var o option
		for _, candidate := range options {
			if candidate.name == name {
				o = candidate
			}
		}
		if o.to == nil {
			return wrong(pattern, options, "unknown option %q: it has %s", name, known(options))
		}
		if given[name] {
			return wrong(pattern, options, "%s is given twice", name)
		}
		given[name] = true
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil || n < o.least || n > largest {
			return wrong(pattern, options, "%s = %q is not a whole number from %d to %d", name, value, o.least, largest)
		}
		*o.to = n
	}
	return nil
}

// wrong is an error of a pattern's text, with how it is written.
func wrong(pattern string, options []option, format string, args ...any) error {
	name, _, _ := strings.Cut(strings.TrimSpace(pattern), ":")
	usage := name
	for _, o := range options {
		usage += ":" + strings.ToUpper(o.name)
	}
	if len(options) > 1 {
		usage += ", or named options, such as " + name + ":" + options[1].name + "=N"
	}
	return &Error{fmt.Sprintf("%s: %s", pattern, fmt.Sprintf(format, args...)), usage}
}

// known lists the options of a pattern.
func known(options []option) string {
	var list []string
	for _, o := range options {
		list = append(list, o.name)
	}
	switch len(list) {
	case 0:
		return "no options"
	case 1:
		return "one option, " + list[0]
	}
	return fmt.Sprintf("%d options, %s", len(list), strings.Join(list, ", "))
}

// with writes an option.
func with(name string, value int) string { return name + "=" + strconv.Itoa(value) }
