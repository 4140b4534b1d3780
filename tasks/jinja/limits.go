package jinja

import "fmt"

const (
	maxTemplate = 64 << 10 // bytes
	maxDepth    = 64       // nesting of expressions and statements
	maxWork     = 1 << 20  // of a rendering: parts evaluated, elements, and 16 bytes of texts made count as one each
	maxText     = 4 << 20  // bytes of a text that a rendering makes
	maxItems    = 1 << 16  // of a list that a rendering makes
)

// An Error says why a template cannot be rendered, at all or with the given item.
type Error struct {
	Line    int // of the template, from 1
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d of the template: %s", e.Line, e.Message) }

func fail(line int, format string, args ...any) *Error {
	return &Error{line, fmt.Sprintf(format, args...)}
}
