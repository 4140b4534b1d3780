package tasks

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"anneal/internal/nearest"
	"anneal/internal/yaml"

	"github.com/goccy/go-yaml/ast"
)

// An entry is a key of a file with its value.
type entry struct {
	key  string
	file string
	node ast.Node
}

// at returns the position of the entry's value.
func (e *entry) at() string { return place(e.file, e.node) }

func place(file string, n ast.Node) string {
	if n == nil || n.GetToken() == nil {
		return file
	}
	return fmt.Sprintf("%s:%d", file, n.GetToken().Position.Line)
}

func (e *entry) problem(try, format string, args ...any) *Problem {
	return &Problem{At: e.at(), Message: fmt.Sprintf(format, args...), Try: try}
}

// byteOrderMark begins the files of some editors.
const byteOrderMark = "\ufeff"

// readFile parses a text of YAML that is one mapping.
func readFile(file string, text []byte) ([]*entry, error) {
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	f, err := yaml.Parse(text)
	if e := (*yaml.Error)(nil); errors.As(err, &e) {
		p := &Problem{At: file, Message: e.Message, Try: e.Try}
		if e.Line > 0 {
			p.At = fmt.Sprintf("%s:%d", file, e.Line)
			if strings.Contains(line(text, e.Line), "!function") {
				p.Message, p.Try = "!function calls Python, which is not run here",
					"a template, or the values written into the data beforehand"
			}
		}
		return nil, p
	}
	if len(f.Docs) != 1 || f.Docs[0].Body == nil {
		return nil, &Problem{At: file, Message: "no task in it", Try: "a file with task: NAME and its other keys"}
	}
	return pairs(file, f.Docs[0].Body)
}

func line(text []byte, n int) string {
	lines := strings.Split(string(text), "\n")
	if n > len(lines) {
		return ""
	}
	return lines[n-1]
}

// pairs returns the keys of a mapping with their values.
func pairs(file string, n ast.Node) ([]*entry, error) {
	m, ok := n.(ast.MapNode)
	if !ok {
		return nil, &Problem{At: place(file, n), Message: clip(n.String()) + ": keys and values are expected here"}
	}
	var list []*entry
	for it := m.MapRange(); it.Next(); {
		key := it.Key().String()
		if s, ok := it.Key().(*ast.StringNode); ok {
			key = s.Value
		}
		list = append(list, &entry{key, file, it.Value()})
	}
	return list, nil
}

// byKey returns entries by their keys.
func byKey(list []*entry) map[string]*entry {
	keys := map[string]*entry{}
	for _, e := range list {
		keys[e.key] = e
	}
	return keys
}

// unknown returns the Problem of a key that is not among names.
func (e *entry) unknown(names []string) *Problem {
	try := "one of " + strings.Join(names, ", ")
	if n := nearest.To(e.key, names); n != "" {
		try = n
	}
	return e.problem(try, "unknown key %s", clip(e.key))
}

// mapping returns the value's keys, which must all be among names.
func (e *entry) mapping(names ...string) ([]*entry, error) {
	list, err := pairs(e.file, e.node)
	if err != nil {
		return nil, err
	}
	for _, x := range list {
		if !slices.Contains(names, x.key) {
			return nil, x.unknown(names)
		}
	}
	return list, nil
}

// items returns the elements of a list, each under the list's key.
func (e *entry) items() ([]*entry, error) {
	list, ok := e.node.(*ast.SequenceNode)
	if !ok {
		return nil, e.problem("[a, b]", "%s is not a list", e.key)
	}
	var all []*entry
	for _, n := range list.Values {
		all = append(all, &entry{e.key, e.file, n})
	}
	return all, nil
}

// null reports whether the value is null or missing.
func (e *entry) null() bool {
	_, ok := e.node.(*ast.NullNode)
	return ok || e.node == nil
}

func (e *entry) text() (string, error) {
	switch n := e.node.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	}
	return "", e.problem("quotes around it", "%s: %s is not a text", e.key, clip(e.node.String()))
}

// texts reads a text, or a list of them.
func (e *entry) texts() ([]string, error) {
	if _, ok := e.node.(*ast.SequenceNode); !ok {
		s, err := e.text()
		return []string{s}, err
	}
	items, err := e.items()
	if err != nil {
		return nil, err
	}
	list := []string{}
	for _, x := range items {
		s, err := x.text()
		if err != nil {
			return nil, err
		}
		list = append(list, s)
	}
	return list, nil
}

func (e *entry) truth() (bool, error) {
	if b, ok := e.node.(*ast.BoolNode); ok {
		return b.Value, nil
	}
	return false, e.problem("true or false", "%s: %s is neither true nor false", e.key, clip(e.node.String()))
}

// whole reads a whole number of at least low.
func (e *entry) whole(low int) (int, error) {
	v, err := e.value()
	if n, ok := v.(int64); err == nil && ok && n >= int64(low) && n <= math.MaxInt32 {
		return int(n), nil
	}
	return 0, e.problem("", "%s: %s is not a whole number of at least %d", e.key, clip(e.node.String()), low)
}

// value converts a scalar or a list of scalars to a value of templates.
func (e *entry) value() (any, error) {
	switch n := e.node.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return e.text()
	case *ast.BoolNode:
		return n.Value, nil
	case *ast.NullNode:
		return nil, nil
	case *ast.FloatNode:
		return n.Value, nil
	case *ast.IntegerNode:
		switch v := n.Value.(type) {
		case int64:
			return v, nil
		case uint64:
			if v <= math.MaxInt64 {
				return int64(v), nil
			}
		}
	case *ast.SequenceNode:
		items, err := e.items()
		if err != nil {
			return nil, err
		}
		list := []any{}
		for _, x := range items {
			v, err := x.value()
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
	return nil, e.problem("", "%s: %s is not supported here", e.key, clip(e.node.String()))
}
