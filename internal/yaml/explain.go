package yaml

import (
	"fmt"
	"regexp"
	"strings"
)

var definedTwice = regexp.MustCompile(`mapping key "(.*)" already defined at \[(\d+):\d+\]$`)

// explain says in plain words why a text is not YAML, and what to do, if the parser's message does not.
func explain(e *Error, text []byte) *Error {
	if line, column := tabbed(text); line > 0 && (e.Line == 0 || line <= e.Line+1) {
		return &Error{
			Line: line, Column: column, Try: "two spaces in place of each tab",
			Message: fmt.Sprintf("line %d is indented with a tab, which YAML does not allow", line),
		}
	}
	if m := definedTwice.FindStringSubmatch(e.Message); m != nil {
		e.Message = fmt.Sprintf("%s appears twice, first on line %s", m[1], m[2])
		e.Try = "removing one of them; a section appears once, with all its keys below it"
		return e
	}
	for _, known := range []struct{ part, try string }{
		{"end token", "adding the missing bracket: every { needs a } and every [ a ]"},
		{"unexpected key name", "a colon after the name, such as model:"},
		{"not allowed in this context", "the same indentation for all keys of a section, each as key: value"},
		{"could not find end character", "adding the missing quote"},
	} {
		if strings.Contains(e.Message, known.part) {
			e.Try = known.try
		}
	}
	return e
}

// tabbed returns the first line that is indented with a tab, and the column of the tab; 0 if there is none.
func tabbed(text []byte) (line, column int) {
	for i, l := range strings.Split(string(text), "\n") {
		indent := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
		if at := strings.IndexByte(indent, '\t'); at >= 0 && strings.TrimSpace(l) != "" {
			return i + 1, at + 1
		}
	}
	return 0, 0
}
