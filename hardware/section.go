package hardware

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"anneal/internal/nearest"
)

// A section is a map of a hardware file. Its keys are read one by one, and close reports the keys that were not read.
// All faults of a file are collected in one list.
type section struct {
	name   string              // prefix of its keys in errors, such as "network[1]."
	values map[string]ast.Node // nil if it is not a map, which is already reported
	keys   []string            // keys of values, in the order of the file
	read   []string
	faults *[]Fault
}

// A Fault is one fault of a hardware file.
type Fault struct {
	Line    int // from 1; 0 for something missing
	Message string
}

func (f Fault) Error() string {
	if f.Line > 0 {
		return fmt.Sprintf("line %d: %s", f.Line, f.Message)
	}
	return f.Message
}

// order is the sort key of a fault: by line, with missing things last.
func (f Fault) order() uint { return uint(f.Line - 1) }

// open returns the section of a node; it is empty if the node is not a map.
func open(name string, node ast.Node, faults *[]Fault) *section {
	s := &section{name: name, values: map[string]ast.Node{}, faults: faults}
	var list []*ast.MappingValueNode
	switch n := node.(type) {
	case *ast.MappingNode:
		list = n.Values
	case *ast.MappingValueNode:
		list = []*ast.MappingValueNode{n}
	default:
		s.fault(node, "%s must be keys with values, such as name: mine", s.path())
		s.values = nil
	}
	first := map[string]int{} // line of each key
	for _, v := range list {
		at := v.Key.GetToken()
		key := at.Value
		if line, again := first[key]; again {
			*s.faults = append(*s.faults, Fault{Line: at.Position.Line, Message: fmt.Sprintf(
				"%s%s appears twice, first on line %d: remove one of them", s.name, shown(key), line)})
			continue
		}
		first[key] = at.Position.Line
		s.values[key] = v.Value
		s.keys = append(s.keys, key)
	}
	return s
}

// path returns the name of the section itself.
func (s *section) path() string {
	if s.name == "" {
		return "the file"
	}
	return strings.TrimSuffix(s.name, ".")
}

func (s *section) fault(at ast.Node, format string, args ...any) {
	f := Fault{Message: fmt.Sprintf(format, args...)}
	if at != nil && at.GetToken() != nil {
		f.Line = at.GetToken().Position.Line
	}
	*s.faults = append(*s.faults, f)
}

func (s *section) take(key string) ast.Node {
	s.read = append(s.read, key)
	return s.values[key]
}

// figure reads a number in a range. A missing number counts as 0, which is a fault if the range begins above 0.
func (s *section) figure(key string, least, most float64, unit string) float64 {
	node := s.take(key)
	if node == nil {
		if least > 0 {
			s.missing(key, least, most, unit)
		}
		return 0
	}
	x, ok := number(node)
	if !ok {
		s.fault(node, "%s%s is %s, must be a number of %s", s.name, key, shown(node.String()), unit)
	} else if !(x >= least && x <= most) { // NaN, too
		s.fault(node, "%s%s is %s, must be from %s to %s %s", s.name, key, short(x), short(least), short(most), unit)
	}
	return x
}

// required reads a number in a range that may begin at 0. Unlike figure, it refuses a missing number.
func (s *section) required(key string, least, most float64, unit string) float64 {
	if s.values[key] == nil {
		s.missing(key, least, most, unit)
	}
	return s.figure(key, least, most, unit)
}

// missing reports a missing number, unless there is no map that could have it.
func (s *section) missing(key string, least, most float64, unit string) {
	if s.values != nil {
		s.fault(nil, "%s%s is missing, must be from %s to %s %s", s.name, key, short(least), short(most), unit)
	}
}

// count reads a whole number in a range.
func (s *section) count(key string, least, most int, unit string) int {
	before := len(*s.faults)
	x := s.figure(key, float64(least), float64(most), unit)
	if len(*s.faults) > before {
		return 0
	}
	if x != math.Trunc(x) {
		s.fault(s.values[key], "%s%s is %s, must be a whole number of %s", s.name, key, short(x), unit)
		return 0
	}
	return int(x)
}

// text reads a name that can be printed.
func (s *section) text(key, otherwise string) string {
	node := s.take(key)
	if node == nil {
		return otherwise
	}
	n, ok := node.(ast.ScalarNode)
	name := ""
	if ok {
		name = strings.TrimSpace(n.GetToken().Value)
	}
	odd := func(r rune) bool { return r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 }
	if name == "" || len(name) > longestName || strings.ContainsFunc(name, odd) {
		s.fault(node, "%s%s must be a name of 1 to %d letters", s.name, key, longestName)
		return otherwise
	}
	return name
}

// inner reads a map within this one, which is empty if it is missing.
func (s *section) inner(key string) *section {
	node := s.take(key)
	if node == nil {
		inside := &section{name: s.name + key + ".", faults: s.faults}
		if s.values != nil {
			inside.values = map[string]ast.Node{}
		}
		return inside
	}
	return open(s.name+key+".", node, s.faults)
}

// list reads a list of maps.
func (s *section) list(key string) (list []*section) {
	node := s.take(key)
	sequence, ok := node.(*ast.SequenceNode)
	if s.values == nil {
		return nil
	}
	if node != nil && !ok {
		s.fault(node, "%s%s must be a list, each with a dash before it", s.name, key)
		return nil
	}
	if node == nil || len(sequence.Values) == 0 {
		s.fault(node, "%s%s has no levels: give at least one with gb_per_second and latency_us", s.name, key)
		return nil
	}
	for i, v := range sequence.Values {
		list = append(list, open(fmt.Sprintf("%s%s[%d].", s.name, key, i), v, s.faults))
	}
	return list
}

// close reports the keys that were not read.
func (s *section) close() {
	for _, key := range s.keys {
		if slices.Contains(s.read, key) {
			continue
		}
		hint := "known are " + strings.Join(s.read, ", ")
		if near := nearest.To(key, s.read); near != "" {
			hint = "did you mean " + near + "?"
		}
		s.fault(s.values[key], "there is no key %s%s: %s", s.name, shown(key), hint)
	}
}

const longestName = 64

// shown returns a part of the file in a form fit for an error.
func shown(text string) string {
	if r := []rune(text); len(r) > longestName {
		text = string(r[:longestName]) + "…"
	}
	q := fmt.Sprintf("%q", text)
	if q[1:len(q)-1] == text && text != "" {
		return text
	}
	return q
}

// short writes a bound or a figure, without an exponent unless it has more than ten digits.
func short(x float64) string { return fmt.Sprintf("%.10g", x) }

func number(node ast.Node) (float64, bool) {
	switch n := node.(type) {
	case *ast.IntegerNode:
		switch v := n.Value.(type) {
		case int64:
			return float64(v), true
		case uint64:
			return float64(v), true
		}
	case *ast.FloatNode:
		return n.Value, true
	case *ast.StringNode: // 2e3 is a number in YAML 1.2
		x, err := strconv.ParseFloat(n.Value, 64)
		return x, err == nil && n.Token.Type == token.StringType
	case *ast.InfinityNode:
		return n.Value, true
	case *ast.NanNode:
		return math.NaN(), true
	}
	return 0, false
}
