package jinja

import (
	"maps"
	"math"
	"strings"
)

// scope holds the values of the names in a rendering.
type scope struct {
	values map[string]any
	local  map[string]any // of set and for
	work   int
}

func newScope(values map[string]any) *scope {
	return &scope{values: values, local: map[string]any{}}
}

// charge counts the work of a rendering.
func (s *scope) charge(line, n int) error {
	if s.work += n; s.work > maxWork {
		return fail(line, "rendering takes too much work")
	}
	return nil
}

// made charges for a new value and returns it.
func (s *scope) made(line int, v any) (any, error) { return v, s.charge(line, weight(v)) }

// tooLong returns the error of a text of n bytes, which exceeds the limit.
func (s *scope) tooLong(line, n int) error {
	if err := s.charge(line, n/16); err != nil {
		return err
	}
	return fail(line, "the text becomes longer than %d MiB", maxText>>20)
}

// equal returns Python's a == b, and charges for it.
func (s *scope) equal(line int, a, b any) (bool, error) {
	before := maxWork - s.work
	left := before
	same := equal(a, b, &left)
	return same, s.charge(line, before-left)
}

// weight returns the work that a value counts as.
func weight(v any) int {
	switch v := v.(type) {
	case string:
		return 1 + len(v)/16
	case []any:
		return 1 + len(v)
	case map[string]any:
		return 1 + len(v)
	}
	return 1
}

func (s *scope) lookup(name string) (any, bool) {
	if v, ok := s.local[name]; ok {
		return v, true
	}
	v, ok := s.values[name]
	return v, ok
}

// Render renders the template with the fields of an item. An error is an *Error.
func (t *Template) Render(values map[string]any) (string, error) {
	var out strings.Builder
	if err := renderAll(t.body, newScope(values), &out); err != nil {
		return "", err
	}
	return out.String(), nil
}

func renderAll(list []node, s *scope, out *strings.Builder) error {
	for _, n := range list {
		if err := n.render(s, out); err != nil {
			return err
		}
	}
	return nil
}

func (n textNode) render(s *scope, out *strings.Builder) error { return emit(out, string(n), 1) }

func emit(out *strings.Builder, text string, line int) error {
	if out.Len()+len(text) > maxText {
		return fail(line, "the text becomes longer than %d MiB", maxText>>20)
	}
	out.WriteString(text)
	return nil
}

func (n *printNode) render(s *scope, out *strings.Builder) error {
	v, err := n.value.eval(s)
	if err != nil {
		return err
	}
	return emit(out, Text(v), n.line)
}

func (n *setNode) render(s *scope, _ *strings.Builder) (err error) {
	s.local[n.name], err = n.value.eval(s)
	return err
}

func (n *ifNode) render(s *scope, out *strings.Builder) error {
	v, err := n.condition.eval(s)
	switch {
	case err != nil:
		return err
	case truth(v):
		return renderAll(n.then, s, out)
	}
	return renderAll(n.not, s, out)
}

func (n *forNode) render(s *scope, out *strings.Builder) error {
	v, err := n.list.eval(s)
	if err != nil {
		return err
	}
	items, ok := elements(v)
	if !ok {
		return fail(n.line, "%s is not iterable", short(v))
	}
	outer := s.local
	defer func() { s.local = outer }() // names set in a loop end with it
	if n.kept != nil {
		var kept []any
		for _, item := range items {
			if err := n.begin(s, outer, item); err != nil {
				return err
			}
			v, err := n.kept.eval(s)
			if err != nil {
				return err
			}
			if truth(v) {
				kept = append(kept, item)
			}
		}
		items = kept
	}
	for i, item := range items {
		if err := n.begin(s, outer, item); err != nil {
			return err
		}
		s.local["loop"] = map[string]any{
			"index": int64(i + 1), "index0": int64(i), "first": i == 0, "last": i == len(items)-1,
			"length": int64(len(items)),
		}
		if err := renderAll(n.body, s, out); err != nil {
			return err
		}
	}
	return nil
}

// begin begins the scope of an element of a loop: the loop's name holds the element, or its names hold the parts of
// the element, beside the names around the loop.
func (n *forNode) begin(s *scope, outer map[string]any, item any) error {
	if err := s.charge(n.line, 1+len(outer)); err != nil {
		return err
	}
	s.local = maps.Clone(outer)
	if len(n.names) == 1 {
		s.local[n.names[0]] = item
		return nil
	}
	parts, ok := elements(item)
	if !ok || len(parts) != len(n.names) {
		return fail(n.line, "%s does not have %d parts", short(item), len(n.names))
	}
	for i, name := range n.names {
		s.local[name] = parts[i]
	}
	return nil
}

func (e *constant) eval(*scope) (any, error) { return e.value, nil }

func (e *name) eval(s *scope) (any, error) {
	v, ok := s.lookup(e.name)
	if !ok {
		if err := s.charge(e.line, weight(s.values)); err != nil {
			return nil, err
		}
		return nil, fail(e.line, "%s is not a field of the item: it has %s", e.name, fields(s.values))
	}
	return v, s.charge(e.line, 1)
}

func (e *list) eval(s *scope) (any, error) {
	v := make([]any, len(e.items))
	for i, x := range e.items {
		var err error
		if v[i], err = x.eval(s); err != nil {
			return nil, err
		}
	}
	return s.made(0, v)
}

func (e *member) eval(s *scope) (any, error) {
	x, err := e.x.eval(s)
	if err != nil {
		return nil, err
	}
	key, err := e.key.eval(s)
	if err != nil {
		return nil, err
	}
	if err := s.charge(e.line, weight(key)); err != nil {
		return nil, err
	}
	if m, ok := x.(map[string]any); ok {
		k, text := key.(string)
		if v, ok := m[k]; text && ok {
			return v, nil
		}
		if err := s.charge(e.line, weight(m)); err != nil {
			return nil, err
		}
		return nil, fail(e.line, "%s is not a field: there are %s", short(key), fields(m))
	}
	if err := s.charge(e.line, weight(x)); err != nil {
		return nil, err
	}
	at, whole := wholeNumber(key)
	list, ok := elements(x)
	if !ok || !whole {
		return nil, fail(e.line, "%s has no element %s", short(x), short(key))
	}
	if at < 0 {
		at += int64(len(list))
	}
	if at < 0 || at >= int64(len(list)) {
		return nil, fail(e.line, "element %s is not among the %d of %s", short(key), len(list), short(x))
	}
	return list[at], nil
}

func (e *part) eval(s *scope) (any, error) {
	x, err := e.x.eval(s)
	if err != nil {
		return nil, err
	}
	if err := s.charge(e.line, weight(x)); err != nil {
		return nil, err
	}
	list, ok := elements(x)
	if _, isMap := x.(map[string]any); !ok || isMap {
		return nil, fail(e.line, "%s has no parts", short(x))
	}
	bounds := [2]int64{0, int64(len(list))}
	for i, b := range []expression{e.from, e.to} {
		if b == nil {
			continue
		}
		v, err := b.eval(s)
		if err != nil {
			return nil, err
		}
		n, whole := wholeNumber(v)
		if err := s.charge(e.line, weight(v)); err != nil {
			return nil, err
		}
		if !whole {
			return nil, fail(e.line, "%s is not a place in a list", short(v))
		}
		if n < 0 {
			n += int64(len(list))
		}
		bounds[i] = min(max(n, 0), int64(len(list)))
	}
	list = list[bounds[0]:max(bounds[0], bounds[1])]
	if _, text := x.(string); !text {
		return list, nil
	}
	var b strings.Builder
	for _, r := range list {
		b.WriteString(r.(string))
	}
	return b.String(), nil
}

func (e *test) eval(s *scope) (any, error) {
	v, err := e.x.eval(s)
	switch e.what {
	case "defined":
		return err == nil, nil
	case "undefined":
		return err != nil, nil
	}
	if err != nil {
		return nil, err
	}
	switch e.what {
	case "none":
		return v == nil, nil
	case "string":
		_, ok := v.(string)
		return ok, nil
	}
	_, ok := float(v)
	return ok, nil
}

func (e *conditional) eval(s *scope) (any, error) {
	c, err := e.condition.eval(s)
	switch {
	case err != nil:
		return nil, err
	case truth(c):
		return e.value.eval(s)
	case e.otherwise == nil:
		return "", nil
	}
	return e.otherwise.eval(s)
}

func (e *unary) eval(s *scope) (any, error) {
	v, err := e.x.eval(s)
	if err != nil {
		return nil, err
	}
	if e.op == "not" {
		return !truth(v), nil
	}
	if n, ok := wholeNumber(v); ok {
		if n == math.MinInt64 {
			return nil, tooLarge(e.line)
		}
		return -n, nil
	}
	if f, ok := v.(float64); ok {
		return -f, nil
	}
	if err := s.charge(e.line, weight(v)); err != nil {
		return nil, err
	}
	return nil, fail(e.line, "%s has no negative", short(v))
}

func (e *binary) eval(s *scope) (any, error) {
	x, err := e.x.eval(s)
	if err != nil {
		return nil, err
	}
	switch {
	case e.op == "or" && truth(x), e.op == "and" && !truth(x):
		return x, nil
	}
	y, err := e.y.eval(s)
	if err != nil {
		return nil, err
	}
	if err := s.charge(e.line, weight(x)+weight(y)); err != nil {
		return nil, err
	}
	switch e.op {
	case "or", "and":
		return y, nil
	case "==":
		return s.equal(e.line, x, y)
	case "!=":
		same, err := s.equal(e.line, x, y)
		return !same, err
	case "in":
		return s.contains(e.line, y, x)
	case "~":
		return e.join(s, Text(x), Text(y))
	case "<", ">", "<=", ">=":
		order, ok := compare(x, y)
		if !ok {
			return nil, fail(e.line, "%s and %s have no order", short(x), short(y))
		}
		return map[string]bool{"<": order < 0, ">": order > 0, "<=": order <= 0, ">=": order >= 0}[e.op], nil
	case "+":
		if a, ok := x.(string); ok {
			if b, ok := y.(string); ok {
				return e.join(s, a, b)
			}
		}
		if a, ok := x.([]any); ok {
			if b, ok := y.([]any); ok && len(a)+len(b) <= maxItems {
				return s.made(e.line, append(a[:len(a):len(a)], b...))
			}
		}
	}
	return e.arithmetic(x, y)
}

func (e *binary) join(s *scope, a, b string) (any, error) {
	if len(a)+len(b) > maxText {
		return nil, s.tooLong(e.line, len(a)+len(b))
	}
	return s.made(e.line, a+b)
}

// arithmetic of Python: // and % round down, / yields a float.
func (e *binary) arithmetic(x, y any) (any, error) {
	a, whole := wholeNumber(x)
	b, both := wholeNumber(y)
	f, first := float(x)
	g, second := float(y)
	switch {
	case !first || !second:
		return nil, fail(e.line, "%s %s %s means nothing", short(x), e.op, short(y))
	case (e.op == "/" || e.op == "//" || e.op == "%") && g == 0:
		return nil, fail(e.line, "a division by 0")
	case e.op == "/":
		return f / g, nil
	}
	if whole && both {
		return e.wholeArithmetic(a, b)
	}
	switch e.op {
	case "+":
		return f + g, nil
	case "-":
		return f - g, nil
	case "*":
		return f * g, nil
	}
	quotient, rest := floorDivide(f, g)
	if e.op == "//" {
		return quotient, nil
	}
	return rest, nil
}

// wholeArithmetic refuses results of more than 64 bits, which Python has.
func (e *binary) wholeArithmetic(a, b int64) (any, error) {
	var c int64
	overflow := false
	switch e.op {
	case "+":
		c = a + b
		overflow = (c > a) != (b > 0)
	case "-":
		c = a - b
		overflow = (c < a) != (b > 0)
	case "*":
		c = a * b
		overflow = a != 0 && (c/a != b || a == -1 && b == math.MinInt64)
	default:
		c = a / b
		rest := a % b
		if rest != 0 && (rest < 0) != (b < 0) {
			c, rest = c-1, rest+b
		}
		if overflow = a == math.MinInt64 && b == -1; e.op == "%" {
			return rest, nil
		}
	}
	if overflow {
		return nil, tooLarge(e.line)
	}
	return c, nil
}

func tooLarge(line int) error { return fail(line, "a whole number of more than 64 bits") }

// floorDivide returns the quotient rounded down and the rest with the sign of g, as CPython computes them: the rest is
// exact, and the quotient follows from it.
func floorDivide(f, g float64) (quotient, rest float64) {
	rest = math.Mod(f, g)
	quotient = (f - rest) / g
	if rest != 0 && (g < 0) != (rest < 0) {
		rest, quotient = rest+g, quotient-1
	} else if rest == 0 {
		rest = math.Copysign(0, g)
	}
	if quotient == 0 {
		return math.Copysign(0, f/g), rest
	}
	if whole := math.Floor(quotient); quotient-whole <= 0.5 {
		return whole, rest
	}
	return math.Floor(quotient) + 1, rest
}
