package tasks

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"

	"anneal/tasks/jinja"
)

// A pipeline changes answers before they are measured.
type pipeline struct {
	name  string
	steps []step
}

// A step is a function of a filter.
type step struct {
	function string
	regex    *regexp2.Regexp
	group    int // index of the match to take; from the end if negative
	fallback string
}

// readFilters reads filter_list.
func (t *Task) readFilters(e *entry) error {
	t.filters = []pipeline{{name: "none"}}
	if e == nil || e.null() {
		return nil
	}
	if t.Output != Generate {
		return e.problem("output_type: generate_until", "%s has no use of filter_list", t.Output)
	}
	items, err := e.items()
	if err != nil {
		return err
	}
	t.filters = nil
	for _, x := range items {
		p, err := readPipeline(x)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(t.filters, func(o pipeline) bool { return o.name == p.name }) {
			return x.problem("another name", "two filters are called %s", clip(p.name))
		}
		t.filters = append(t.filters, p)
	}
	if t.filters == nil {
		return e.problem("leaving it out", "filter_list is empty")
	}
	return nil
}

func readPipeline(e *entry) (p pipeline, err error) {
	keys, err := e.mapping("name", "filter")
	if err != nil {
		return p, err
	}
	for _, k := range keys {
		if k.key == "name" {
			if p.name, err = k.text(); err != nil {
				return p, err
			}
			continue
		}
		items, err := k.items()
		if err != nil {
			return p, err
		}
		for _, x := range items {
			s, err := readStep(x)
			if err != nil {
				return p, err
			}
			p.steps = append(p.steps, s)
		}
	}
	switch n := len(p.steps); {
	case p.name == "":
		err = e.problem("name: strict-match", "a filter without a name")
	case n == 0 || p.steps[n-1].function != "take_first":
		err = e.problem("a last step - function: take_first", "the filter %s does not end with one answer",
			clip(p.name))
	}
	return p, err
}

func readStep(e *entry) (s step, err error) {
	s = step{fallback: "[invalid]"}
	pattern := `#### (\-?[0-9\.\,]+)`
	list, err := e.mapping("function", "regex_pattern", "group_select", "fallback")
	if err != nil {
		return s, err
	}
	keys := byKey(list)
	err = all(
		set(keys, "function", &s.function, (*entry).text),
		set(keys, "regex_pattern", &pattern, (*entry).text),
		set(keys, "fallback", &s.fallback, (*entry).text),
		set(keys, "group_select", &s.group, func(e *entry) (int, error) { return e.whole(-1 << 31) }),
	)
	functions := []string{"regex", "lowercase", "uppercase", "remove_whitespace", "take_first"}
	switch {
	case err != nil:
		return s, err
	case !slices.Contains(functions, s.function):
		return s, e.problem("one of "+strings.Join(functions, ", "), "function: %q is not a filter", clip(s.function))
	case s.function == "regex":
		s.regex, err = compile(e, pattern)
	case len(list) > 1:
		err = e.problem("function alone", "%s has no options", s.function)
	}
	return s, err
}

// compile compiles a regular expression of Python as one of .NET, whose syntax is close to it.
func compile(e *entry, pattern string) (*regexp2.Regexp, error) {
	re, err := regexp2.Compile(dotNet(pattern), regexp2.OptionMaxBacktrackingStackSize(1<<20))
	if err != nil {
		return nil, e.problem("", "%q is not a regular expression: %v", clip(pattern), err)
	}
	re.MatchTimeout = time.Second
	return re, nil
}

var noMinimum = regexp.MustCompile(`^\{,\d*\}`)

// dotNet writes what Python writes otherwise than .NET: counts without a minimum, the end of the text, named groups.
func dotNet(pattern string) string {
	var b strings.Builder
	class := -1 // where the first character of a class may stand, in which ] is no end; -1 outside
	for i := 0; i < len(pattern); i++ {
		rest := pattern[i:]
		switch {
		case strings.HasPrefix(rest, `\Z`) && class < 0:
			b.WriteString(`\z`)
			i++
			continue
		case rest[0] == '\\' && len(rest) > 1:
			b.WriteString(rest[:2])
			i++
			continue
		case class >= 0:
			if rest[0] == ']' && i > class {
				class = -1
			}
		case rest[0] == '[':
			class = i + 1
			if strings.HasPrefix(rest, "[^") {
				class++
			}
		case noMinimum.MatchString(rest):
			b.WriteString("{0")
			continue
		case strings.HasPrefix(rest, "(?P<"):
			b.WriteString("(?")
			i += 2
			continue
		case strings.HasPrefix(rest, "(?P=") && strings.Contains(rest, ")"):
			name, _, _ := strings.Cut(rest[4:], ")")
			b.WriteString(`\k<` + name + ">")
			i += 4 + len(name)
			continue
		}
		b.WriteByte(rest[0])
	}
	return b.String()
}

// apply returns the answer after all steps.
func (p pipeline) apply(answer string) (string, error) {
	for _, s := range p.steps {
		switch s.function {
		case "lowercase":
			answer = jinja.Lower(answer)
		case "uppercase":
			answer = jinja.Upper(answer)
		case "remove_whitespace":
			answer = strings.TrimSpace(answer)
		case "regex":
			var err error
			if answer, err = s.match(answer); err != nil {
				return "", err
			}
		}
	}
	return answer, nil
}

// match returns the element of re.findall that the step asks for: the match, its group if it has one, or the first
// group that is not empty if it has several.
func (s step) match(answer string) (string, error) {
	var found []string
	m, err := s.regex.FindStringMatch(answer)
	for ; m != nil && err == nil; m, err = s.regex.FindNextMatch(m) {
		groups := m.Groups()
		text := groups[0].String()
		if len(groups) > 1 {
			text = ""
			for _, g := range groups[1:] {
				if text == "" {
					text = g.String()
				}
			}
			if text == "" && len(groups) > 2 {
				text = s.fallback
			}
		}
		found = append(found, text)
	}
	at := s.group
	if at < 0 {
		at += len(found)
	}
	if err != nil || at < 0 || at >= len(found) {
		return s.fallback, err
	}
	return strings.TrimSpace(found[at]), nil
}

const punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

// normal returns the text as exact_match compares it.
func (x exact) normal(s string) (string, error) {
	for _, re := range x.ignore {
		var err error
		if s, err = re.Replace(s, "", -1, -1); err != nil {
			return "", err
		}
	}
	if x.letters {
		s = jinja.Lower(s)
	}
	drop := ""
	if x.signs {
		drop += punctuation
	}
	if x.numbers {
		drop += "0123456789"
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(drop, r) {
			return -1
		}
		return r
	}, s), nil
}
