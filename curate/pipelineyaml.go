package curate

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"anneal/internal/nearest"
	"anneal/internal/yaml"

	"github.com/goccy/go-yaml/ast"
)

// pipelineReader reads the file of a pipeline. It keeps the first problem.
type pipelineReader struct {
	file string
	err  error
}

func (r *pipelineReader) fail(n ast.Node, try, format string, args ...any) {
	if r.err == nil {
		at := r.file
		if n != nil && n.GetToken() != nil {
			at = fmt.Sprintf("%s:%d", r.file, n.GetToken().Position.Line)
		}
		r.err = &Problem{At: at, Message: fmt.Sprintf(format, args...), Try: try}
	}
}

func (r *pipelineReader) pipeline(p *Pipeline, text []byte) {
	f, err := yaml.Parse(text)
	if e := (*yaml.Error)(nil); errors.As(err, &e) {
		at := r.file
		if e.Line > 0 {
			at = fmt.Sprintf("%s:%d", r.file, e.Line)
		}
		r.err = &Problem{At: at, Message: e.Message, Try: e.Try}
		return
	}
	if len(f.Docs) != 1 || f.Docs[0].Body == nil {
		r.fail(nil, "a file with `stages: [normalize, gopher_quality]`", "no pipeline")
		return
	}
	r.mapping(f.Docs[0].Body, []string{"signals", "texts", "stages"}, func(key string, v ast.Node) {
		switch key {
		case "signals":
			p.Signals = r.truth(v)
		case "texts":
			p.Texts = r.truth(v)
		case "stages":
			r.stages(p, v)
		}
	})
	if p.Texts && !p.Signals {
		r.fail(f.Docs[0].Body, "signals: true", "texts: true needs signals: true")
	}
}

// mapping visits the pairs of a mapping whose keys are all of names.
func (r *pipelineReader) mapping(n ast.Node, names []string, visit func(key string, value ast.Node)) {
	m, ok := n.(ast.MapNode)
	if !ok {
		r.fail(n, "one of "+strings.Join(names, ", "), "%s, but keys and values are expected here", clip(n.String()))
		return
	}
	seen := map[string]bool{}
	for it := m.MapRange(); it.Next(); {
		key := it.Key().String()
		switch {
		case !slices.Contains(names, key):
			r.fail(it.Key(), r.near(key, names), "unknown key %s", clip(key))
		case seen[key]:
			r.fail(it.Key(), "one of them", "key %s is given twice", key)
		default:
			visit(key, it.Value())
		}
		seen[key] = true
	}
}

func (r *pipelineReader) near(name string, names []string) string {
	if r.err != nil {
		return "" // only the first problem is reported
	}
	if n := nearest.To(name, names); n != "" {
		return n
	}
	return "one of " + strings.Join(names, ", ")
}

func (r *pipelineReader) stages(p *Pipeline, n ast.Node) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		r.fail(n, "stages: [normalize, gopher_quality]", "stages is not a list")
		return
	}
	for _, item := range list.Values {
		if s, ok := item.(*ast.StringNode); ok {
			if kindOf(s.Value) == nil {
				r.fail(item, r.near(s.Value, StageNames()), "unknown stage %s", clip(s.Value))
			}
			r.stage(p, item, s.Value, nil)
			continue
		}
		n := 0
		r.mapping(item, StageNames(), func(name string, v ast.Node) {
			if n++; n > 1 {
				r.fail(v, "a new item: - "+name, "two stages in one item of the list")
			}
			r.stage(p, item, name, v)
		})
	}
}

func (r *pipelineReader) stage(p *Pipeline, at ast.Node, name string, v ast.Node) {
	k := kindOf(name)
	if k == nil || r.err != nil {
		return
	}
	s := stage{name: name, kind: k, bounds: slices.Clone(k.bounds), options: given{}}
	same := 1
	for _, other := range p.stages {
		if other.kind == k {
			same++
		}
	}
	if same > 1 {
		if s.name = fmt.Sprintf("%s_%d", name, same); !k.many {
			r.fail(at, "one of them", "stage %s is given twice", name)
		}
	}
	if _, none := v.(*ast.NullNode); v != nil && !none {
		r.mapping(v, k.keys(), func(key string, v ast.Node) {
			if i := slices.IndexFunc(s.bounds, func(b Bound) bool { return b.Name == key }); i >= 0 {
				r.bound(v, &s.bounds[i])
				return
			}
			i := slices.IndexFunc(k.options, func(o option) bool { return o.name == key })
			s.options[key] = r.option(v, k.options[i])
		})
	}
	for _, b := range s.bounds {
		if b.Min > b.Max {
			r.fail(at, "min below max", "%s.%s has min %v above max %v", name, b.Name, b.Min, b.Max)
		}
	}
	if r.err != nil {
		return
	}
	if err := s.start(); err != nil {
		message, try := tried(err)
		r.fail(at, try, "%s", message)
	}
	p.stages = append(p.stages, s)
}

func (r *pipelineReader) bound(n ast.Node, b *Bound) {
	r.mapping(n, []string{"min", "max"}, func(side string, v ast.Node) {
		if side == "min" {
			b.Min = r.number(v)
		} else {
			b.Max = r.number(v)
		}
	})
}

// option reads a value of the type that an option has.
func (r *pipelineReader) option(n ast.Node, o option) any {
	switch o.value.(type) {
	case bool:
		return r.truth(n)
	case float64:
		return r.number(n)
	case string:
		return r.text(n, o)
	}
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return []string{r.text(n, o)}
	}
	texts := []string{}
	for _, item := range list.Values {
		texts = append(texts, r.text(item, o))
	}
	return texts
}

// text reads a string, or the path of an existing file.
func (r *pipelineReader) text(n ast.Node, o option) string {
	s, ok := n.(*ast.StringNode)
	switch {
	case !ok:
		r.fail(n, "quotes around it", "%s is not a string", clip(n.String()))
		return ""
	case o.among != nil && !slices.Contains(o.among, s.Value):
		r.fail(n, r.near(s.Value, o.among), "%s cannot be %s", o.name, clip(s.Value))
	case o.files:
		path := s.Value
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(r.file), path)
		}
		if err := regular(path); err != nil {
			r.fail(n, "the path of a file, from the directory of "+r.file, "%s: %v", o.name, err)
		}
		return path
	}
	return s.Value
}

func (r *pipelineReader) truth(n ast.Node) bool {
	b, ok := n.(*ast.BoolNode)
	if !ok {
		r.fail(n, "true or false", "%s is neither true nor false", clip(n.String()))
		return false
	}
	return b.Value
}

func (r *pipelineReader) number(n ast.Node) float64 {
	switch n := n.(type) {
	case *ast.IntegerNode:
		switch v := n.Value.(type) {
		case int64:
			return float64(v)
		case uint64:
			return float64(v)
		}
	case *ast.FloatNode:
		return n.Value
	case *ast.InfinityNode:
		if !math.IsNaN(n.Value) {
			return n.Value
		}
	}
	r.fail(n, "a number such as 0.3, or .inf for no bound", "%s is not a number", clip(n.String()))
	return 0
}

func clip(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s[:min(len(s), 60)]
}
