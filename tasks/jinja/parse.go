package jinja

import (
	"slices"
	"strings"
)

// A Template is a parsed template. It may be rendered from several goroutines at a time.
type Template struct{ body []node }

// A node is a part of a template.
type node interface {
	render(s *scope, out *strings.Builder) error
}

type textNode string

type printNode struct {
	line  int
	value expression
}

type setNode struct {
	line  int
	name  string
	value expression
}

type ifNode struct {
	line      int
	condition expression
	then, not []node
}

type forNode struct {
	line  int
	names []string
	list  expression
	kept  expression // of an item that the loop is for; nil for all
	body  []node
}

// Parse parses a template. An error is an *Error.
func Parse(source string) (*Template, error) {
	if len(source) > maxTemplate {
		return nil, fail(1, "the template is longer than %d KiB", maxTemplate>>10)
	}
	segments, err := cut(strings.ReplaceAll(source, "\r\n", "\n"))
	if err != nil {
		return nil, err
	}
	p := &parser{segments: segments}
	body, end, err := p.nodes(0)
	if err == nil && end != "" {
		err = fail(p.line, "{%% %s %%} without its beginning", end)
	}
	if err != nil {
		return nil, err
	}
	return &Template{body}, nil
}

// parser reads segments, and within them tokens.
type parser struct {
	segments []segment
	list     []token
	line     int
	depth    int
}

// nodes reads up to a statement that ends or divides a block, and returns the first word of that statement.
func (p *parser) nodes(depth int) (list []node, end string, err error) {
	if depth > maxDepth {
		return nil, "", fail(p.line, "more than %d statements in each other", maxDepth)
	}
	for len(p.segments) > 0 {
		s := p.segments[0]
		p.segments, p.line = p.segments[1:], s.line
		if s.kind == 't' {
			list = append(list, textNode(s.text))
			continue
		}
		if p.list, err = tokens(s.text, s.line); err != nil {
			return nil, "", err
		}
		if s.kind == '{' {
			value, err := p.whole()
			if err != nil {
				return nil, "", err
			}
			list = append(list, &printNode{s.line, value})
			continue
		}
		word := p.take()
		var n node
		switch {
		case word.kind != 'n':
			return nil, "", fail(s.line, "a statement without a word")
		case slices.Contains([]string{"else", "elif", "endif", "endfor"}, word.text):
			return list, word.text, nil
		case word.text == "if":
			n, err = p.ifStatement(depth)
		case word.text == "for":
			n, err = p.forStatement(depth)
		case word.text == "set":
			n, err = p.setStatement()
		default:
			return nil, "", fail(s.line, "{%% %s %%} is not supported: only if, elif, else, for and set are", word.text)
		}
		if err != nil {
			return nil, "", err
		}
		list = append(list, n)
	}
	return list, "", nil
}

func (p *parser) ifStatement(depth int) (node, error) {
	n := &ifNode{line: p.line}
	var err error
	if n.condition, err = p.whole(); err != nil {
		return nil, err
	}
	var end string
	if n.then, end, err = p.nodes(depth + 1); err != nil {
		return nil, err
	}
	switch end {
	case "elif":
		other, err := p.ifStatement(depth + 1)
		n.not = []node{other}
		return n, err
	case "else":
		if n.not, end, err = p.nodes(depth + 1); err != nil {
			return nil, err
		}
	}
	if end != "endif" {
		return nil, fail(n.line, "{%% if %%} without {%% endif %%}")
	}
	return n, p.done()
}

func (p *parser) forStatement(depth int) (node, error) {
	n := &forNode{line: p.line}
	for {
		name := p.take()
		if name.kind != 'n' {
			return nil, fail(p.line, "{%% for %%} without a name")
		}
		n.names = append(n.names, name.text)
		if !p.accept(",") {
			break
		}
	}
	if !p.acceptWord("in") {
		return nil, fail(p.line, "{%% for %%} without in")
	}
	var err error
	if n.list, err = p.level(0); err == nil && p.acceptWord("if") {
		n.kept, err = p.conditional()
	}
	if err == nil {
		err = p.done()
	}
	if err != nil {
		return nil, err
	}
	var end string
	if n.body, end, err = p.nodes(depth + 1); err != nil {
		return nil, err
	}
	if end != "endfor" {
		return nil, fail(n.line, "{%% for %%} without {%% endfor %%}")
	}
	return n, p.done()
}

func (p *parser) setStatement() (node, error) {
	name := p.take()
	if name.kind != 'n' || !p.accept("=") {
		return nil, fail(p.line, "{%% set %%} needs a name, = and a value")
	}
	value, err := p.whole()
	return &setNode{p.line, name.text, value}, err
}

func (p *parser) take() token {
	if len(p.list) == 0 {
		return token{}
	}
	t := p.list[0]
	p.list = p.list[1:]
	return t
}

func (p *parser) peek() token {
	if len(p.list) == 0 {
		return token{}
	}
	return p.list[0]
}

// accept takes the sign if it is next.
func (p *parser) accept(sign string) bool {
	if p.peek() != (token{'o', sign}) {
		return false
	}
	p.take()
	return true
}

func (p *parser) acceptWord(word string) bool {
	if p.peek() != (token{'n', word}) {
		return false
	}
	p.take()
	return true
}

// done returns an error if a segment has more tokens where it should end.
func (p *parser) done() error {
	if len(p.list) > 0 {
		return fail(p.line, "%q is not expected here", p.list[0].text)
	}
	return nil
}

// whole reads an expression that takes up the rest of a segment.
func (p *parser) whole() (expression, error) {
	e, err := p.conditional()
	if err != nil {
		return nil, err
	}
	return e, p.done()
}
