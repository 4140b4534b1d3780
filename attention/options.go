package attention

import (
	"fmt"
	"strconv"
	"strings"
)

// option is an option of a pattern.
type option struct {
	name  string
	to    any // *int, or *[]int for a list with slashes between its numbers
	least int
}

// largest is the limit of an option; products of two fit in 64 bits.
const largest = 1 << 30

// read parses options, by order or by name. Missing options keep their values.
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
		values := []string{value}
		list, many := o.to.(*[]int)
		if many {
			values = strings.Split(value, "/")
		}
		for _, value := range values {
			n, err := strconv.Atoi(strings.TrimSpace(value))
			if err != nil || n < o.least || n > largest {
				return wrong(pattern, options, "%s = %q is not a whole number from %d to %d",
					name, value, o.least, largest)
			}
			if many {
				*list = append(*list, n)
			} else {
				*o.to.(*int) = n
			}
		}
	}
	return nil
}

// wrong returns an error for a pattern's text, with its usage.
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

// with formats an option.
func with(name string, value int) string { return name + "=" + strconv.Itoa(value) }
