package jinja

import (
	"slices"
	"strconv"
)

// An expression yields a value, or an *Error.
type expression interface{ eval(s *scope) (any, error) }

type (
	constant struct{ value any }
	name     struct {
		line int
		name string
	}
	list   struct{ items []expression }
	member struct { // x.name, x[key]
		line   int
		x, key expression
	}
	part struct { // x[from:to]
		line        int
		x, from, to expression // from and to may be nil
	}
	call struct { // x|function(args), x.function(args), and range(args) without x
		line     int
		function string
		x        expression
		args     []expression
		method   bool
	}
	test struct { // x is what
		x    expression
		what string
	}
	unary struct {
		line int
		op   string
		x    expression
	}
	binary struct {
		line int
		op   string
		x, y expression
	}
	conditional struct{ value, condition, otherwise expression } // otherwise may be nil
)

// levels holds the binary operators from the loosest to the tightest, with those of Jinja2 among them.
var levels = [][]string{{"or"}, {"and"}, nil, {"==", "!=", "<", ">", "<=", ">=", "in", "not"}, {"+", "-"}, {"~"},
	{"*", "/", "//", "%"}}

const (
	negation   = 2 // the level of not x
	comparison = 3
)

func (p *parser) conditional() (expression, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fail(p.line, "more than %d expressions in each other", maxDepth)
	}
	defer func() { p.depth-- }()
	e, err := p.level(0)
	if err != nil || !p.acceptWord("if") {
		return e, err
	}
	c := &conditional{value: e}
	if c.condition, err = p.level(0); err == nil && p.acceptWord("else") {
		c.otherwise, err = p.conditional()
	}
	return c, err
}

func (p *parser) level(n int) (expression, error) {
	switch {
	case n == len(levels):
		return p.signed()
	case n == negation:
		if p.peek() != (token{'n', "not"}) {
			return p.level(n + 1)
		}
		p.take()
		if p.depth++; p.depth > maxDepth {
			return nil, fail(p.line, "more than %d expressions in each other", maxDepth)
		}
		defer func() { p.depth-- }()
		x, err := p.level(n)
		return &unary{p.line, "not", x}, err
	}
	x, err := p.level(n + 1)
	var chain expression // a < b < c is a < b and b < c
	for err == nil {
		t := p.peek()
		if t.kind != 'o' && t.kind != 'n' || !slices.Contains(levels[n], t.text) {
			break
		}
		p.take()
		if t.text == "not" && !p.acceptWord("in") {
			return nil, fail(p.line, "not without in")
		}
		var y expression
		y, err = p.level(n + 1)
		var both expression = &binary{p.line, t.text, x, y}
		if t.text == "not" {
			both = &unary{p.line, "not", &binary{p.line, "in", x, y}}
		}
		switch {
		case n != comparison:
			x = both
		case chain == nil:
			x, chain = y, both
		default:
			x, chain = y, &binary{p.line, "and", chain, both}
		}
	}
	if chain != nil {
		x = chain
	}
	return x, err
}

// signed reads a primary with signs before it, which bind more tightly than the filters and tests after it: -1|string
// is "-1".
func (p *parser) signed() (expression, error) {
	x, err := p.negated()
	for err == nil {
		switch {
		case p.accept("|"):
			f := p.take()
			if f.kind != 'n' || !slices.Contains(Filters(), f.text) {
				return nil, fail(p.line, "the filter %q is not supported: there are %s", f.text, words(Filters()))
			}
			c := &call{line: p.line, function: f.text, x: x}
			if p.accept("(") {
				c.args, err = p.arguments(")")
			}
			x = c
		case p.acceptWord("is"):
			not := p.acceptWord("not")
			t := p.take()
			if !slices.Contains([]string{"defined", "undefined", "none", "string", "number"}, t.text) {
				return nil, fail(p.line, "the test %q is not supported: there are defined, undefined, none, string, "+
					"number", t.text)
			}
			x = &test{x, t.text}
			if not {
				x = &unary{p.line, "not", x}
			}
		default:
			return x, nil
		}
	}
	return x, err
}

// negated reads a primary with signs before it and fields and calls after it.
func (p *parser) negated() (expression, error) {
	if p.accept("-") {
		if p.depth++; p.depth > maxDepth {
			return nil, fail(p.line, "more than %d expressions in each other", maxDepth)
		}
		defer func() { p.depth-- }()
		x, err := p.negated()
		return &unary{p.line, "-", x}, err
	}
	x, err := p.primary()
	if err == nil {
		x, err = p.postfix(x)
	}
	return x, err
}

func (p *parser) primary() (expression, error) {
	switch t := p.take(); {
	case t.kind == 's':
		text := t.text
		for p.peek().kind == 's' { // adjacent texts are joined
			text += p.take().text
		}
		return &constant{text}, nil
	case t.kind == 'i':
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			return nil, fail(p.line, "the number %s is too large", t.text)
		}
		return &constant{n}, nil
	case t.kind == 'f':
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return nil, fail(p.line, "%s is no number", t.text)
		}
		return &constant{f}, nil
	case t.kind == 'n':
		switch t.text {
		case "true", "True":
			return &constant{true}, nil
		case "false", "False":
			return &constant{false}, nil
		case "none", "None":
			return &constant{nil}, nil
		}
		return &name{p.line, t.text}, nil
	case t == token{'o', "["}:
		items, err := p.arguments("]")
		return &list{items}, err
	case t == token{'o', "("}:
		return p.parenthesis()
	case t.kind == 0:
		return nil, fail(p.line, "an expression is missing")
	default:
		return nil, fail(p.line, "%q is not expected here", t.text)
	}
}

// parenthesis reads the content of a parenthesis: an expression, or a tuple, which is a list here.
func (p *parser) parenthesis() (expression, error) {
	inside := p.list
	items, err := p.arguments(")")
	if err != nil {
		return nil, err
	}
	inside = inside[:len(inside)-len(p.list)-1]
	if len(items) == 1 && inside[len(inside)-1] != (token{'o', ","}) { // (x,) is a tuple
		return items[0], nil
	}
	return &list{items}, nil
}

// arguments reads expressions with commas between them up to a closing sign.
func (p *parser) arguments(end string) (items []expression, err error) {
	for !p.accept(end) {
		e, err := p.conditional()
		if err != nil {
			return nil, err
		}
		items = append(items, e)
		if !p.accept(",") && p.peek() != (token{'o', end}) {
			return nil, fail(p.line, "%s is missing", end)
		}
	}
	return items, nil
}

// postfix reads fields, elements and calls of methods.
func (p *parser) postfix(x expression) (expression, error) {
	for {
		switch {
		case p.accept("."):
			t := p.take()
			switch {
			case t.kind == 'i':
				n, _ := strconv.ParseInt(t.text, 10, 64)
				x = &member{p.line, x, &constant{n}}
			case t.kind != 'n':
				return nil, fail(p.line, "a dot without a name")
			case p.accept("("):
				if !slices.Contains(Methods(), t.text) {
					return nil, fail(p.line, "the method %q is not supported: there are %s", t.text, words(Methods()))
				}
				args, err := p.arguments(")")
				if err != nil {
					return nil, err
				}
				x = &call{p.line, t.text, x, args, true}
			default:
				x = &member{p.line, x, &constant{t.text}}
			}
		case p.accept("["):
			var err error
			if x, err = p.element(x); err != nil {
				return nil, err
			}
		case p.accept("("):
			n, ok := x.(*name)
			if !ok || n.name != "range" {
				return nil, fail(p.line, "only methods and range can be called")
			}
			args, err := p.arguments(")")
			if err != nil {
				return nil, err
			}
			x = &call{line: p.line, function: "range", args: args}
		default:
			return x, nil
		}
	}
}

// element reads [i], ["key"] or [from:to] after x.
func (p *parser) element(x expression) (expression, error) {
	var from, to expression
	var err error
	if p.peek() != (token{'o', ":"}) {
		if from, err = p.conditional(); err != nil {
			return nil, err
		}
		if p.accept("]") {
			return &member{p.line, x, from}, nil
		}
	}
	if !p.accept(":") {
		return nil, fail(p.line, "] is missing")
	}
	if p.peek() != (token{'o', "]"}) {
		if to, err = p.conditional(); err != nil {
			return nil, err
		}
	}
	if !p.accept("]") {
		return nil, fail(p.line, "] is missing")
	}
	return &part{p.line, x, from, to}, nil
}

// Literal returns the value of a text that is a Python literal: a number, a text in quotes, True, False, None, or a
// list of literals.
func Literal(text string) (any, error) {
	if len(text) > maxText {
		return nil, fail(1, "longer than %d MiB", maxText>>20)
	}
	list, err := tokens(text, 1)
	if err != nil {
		return nil, err
	}
	p := &parser{list: list, line: 1}
	e, err := p.literal()
	if err == nil {
		err = p.done()
	}
	if err != nil {
		return nil, err
	}
	return e.eval(newScope(nil))
}

// literal reads a literal, which has only signed values and lists.
func (p *parser) literal() (expression, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, fail(1, "more than %d lists in each other", maxDepth)
	}
	defer func() { p.depth-- }()
	end := "]"
	switch {
	case p.accept("-"):
		x, err := p.literal()
		return &unary{1, "-", x}, err
	case p.accept("["):
	case p.accept("("):
		end = ")"
	default:
		x, err := p.primary()
		if c, ok := x.(*constant); err != nil || ok {
			return c, err
		}
		return nil, fail(1, "not a value")
	}
	var l list
	for !p.accept(end) {
		x, err := p.literal()
		if err != nil {
			return nil, err
		}
		l.items = append(l.items, x)
		if !p.accept(",") && p.peek() != (token{'o', end}) {
			return nil, fail(1, "%s is missing", end)
		}
	}
	return &l, nil
}
