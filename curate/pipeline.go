package curate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"

	"anneal/internal/nearest"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Pipeline is a list of stages, as its file says.
type Pipeline struct {
	Signals bool     // keep the numbers of every document, of the dropped ones too
	Stages  []string // names, in order

	settings []settings
	hash     string
}

// settings are what a file says about a stage: bounds that differ from the published ones, and switches.
type settings struct {
	bounds map[string]limit
	anyEnd bool
}

type limit struct{ min, max *float64 }

// Problem is a fault in a pipeline file.
type Problem struct {
	At, Message, Try string
}

func (p *Problem) Error() string {
	s := p.Message + "\n  at " + p.At
	if p.Try != "" {
		s += "\n  try " + p.Try
	}
	return s
}

var stageNames = []string{"normalize", "gopher_quality", "gopher_repetition", "c4", "c4_paragraphs", "fineweb", "code", "pii"}

// newFilter makes a stage; nil if there is none of that name.
func newFilter(name string, s settings) *Filter {
	var f *Filter
	switch name {
	case "normalize":
		f = Normalize()
	case "gopher_quality":
		f = GopherQuality()
	case "gopher_repetition":
		f = GopherRepetition()
	case "c4":
		f = C4(s.anyEnd)
	case "c4_paragraphs":
		f = C4Paragraphs()
	case "fineweb":
		f = FineWeb()
	case "code":
		f = Code()
	case "pii":
		f = PII()
	default:
		return nil
	}
	for i, b := range f.Bounds {
		if l, ok := s.bounds[b.Name]; ok {
			if l.min != nil {
				f.Bounds[i].Min = *l.min
			}
			if l.max != nil {
				f.Bounds[i].Max = *l.max
			}
		}
	}
	return f
}

// Filters makes the stages anew, for one goroutine.
func (p *Pipeline) Filters() []*Filter {
	filters := make([]*Filter, len(p.Stages))
	for i, name := range p.Stages {
		filters[i] = newFilter(name, p.settings[i])
	}
	return filters
}

// Hash tells pipelines apart that may decide differently: it is over the stages with all their bounds, not over the file.
func (p *Pipeline) Hash() string { return p.hash }

// Parse reads a pipeline, such as
//
//	signals: true
//	stages:
//	  - normalize
//	  - gopher_quality: {words: {min: 20}}
//	  - c4: {terminal_punctuation: false}
//
// A stage stands alone with its published bounds, or with those that differ. File is its name for messages.
func Parse(text []byte, file string) (*Pipeline, error) {
	if len(text) > 1<<20 {
		return nil, &Problem{At: file, Message: "a pipeline of more than 1 MiB"}
	}
	r := pipelineReader{file: file}
	f, err := parser.ParseBytes(text, 0)
	if err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
		return nil, &Problem{At: file, Message: "not YAML: " + line}
	}
	if len(f.Docs) != 1 || f.Docs[0].Body == nil {
		return nil, &Problem{At: file, Message: "no pipeline", Try: "a file with `stages: [normalize, gopher_quality]`"}
	}
	p := new(Pipeline)
	r.mapping(f.Docs[0].Body, []string{"signals", "stages"}, func(key string, v ast.Node) {
		switch key {
		case "signals":
			p.Signals = r.truth(v)
		case "stages":
			r.stages(p, v)
		}
	})
	if r.err != nil {
		return nil, r.err
	}
	if len(p.Stages) == 0 {
		return nil, &Problem{At: file, Message: "a pipeline without stages", Try: "stages: [normalize, gopher_quality]"}
	}
	var b bytes.Buffer
	fmt.Fprintln(&b, "pipeline 1", p.Signals)
	for i, f := range p.Filters() {
		fmt.Fprintln(&b, f.Name, p.settings[i].anyEnd, f.Bounds)
	}
	sum := sha256.Sum256(b.Bytes())
	p.hash = hex.EncodeToString(sum[:])
	return p, nil
}

// pipelineReader keeps the first fault.
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

// mapping visits the pairs of a mapping whose keys are all of names.
func (r *pipelineReader) mapping(n ast.Node, names []string, visit func(key string, value ast.Node)) {
	m, ok := n.(ast.MapNode)
	if !ok {
		r.fail(n, "one of "+strings.Join(names, ", "), "%s where keys and values should stand", clip(n.String()))
		return
	}
	seen := map[string]bool{}
	for it := m.MapRange(); it.Next(); {
		key := it.Key().String()
		switch {
		case !slices.Contains(names, key):
			r.fail(it.Key(), r.near(key, names), "unknown key %s", clip(key))
		case seen[key]:
			r.fail(it.Key(), "one of them", "key %s stands twice", key)
		default:
			visit(key, it.Value())
		}
		seen[key] = true
	}
}

func (r *pipelineReader) near(name string, names []string) string {
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
			if !slices.Contains(stageNames, s.Value) {
				r.fail(item, r.near(s.Value, stageNames), "unknown stage %s", clip(s.Value))
			}
			r.stage(p, item, s.Value, nil)
			continue
		}
		n := 0
		r.mapping(item, stageNames, func(name string, v ast.Node) {
			if n++; n > 1 {
				r.fail(v, "a new item: - "+name, "two stages in one item of the list")
			}
			r.stage(p, item, name, v)
		})
	}
}

func (r *pipelineReader) stage(p *Pipeline, at ast.Node, name string, v ast.Node) {
	if slices.Contains(p.Stages, name) {
		r.fail(at, "one of them", "stage %s stands twice", name)
	}
	s := settings{bounds: map[string]limit{}}
	f := newFilter(name, s)
	if f == nil || r.err != nil {
		return
	}
	if _, none := v.(*ast.NullNode); v != nil && !none {
		names := make([]string, len(f.Bounds))
		for i, b := range f.Bounds {
			names[i] = b.Name
		}
		if name == "c4" {
			names = append(names, "terminal_punctuation")
		}
		r.mapping(v, names, func(key string, v ast.Node) {
			if key == "terminal_punctuation" {
				s.anyEnd = !r.truth(v)
				return
			}
			var l limit
			r.mapping(v, []string{"min", "max"}, func(side string, v ast.Node) {
				x := r.number(v)
				if side == "min" {
					l.min = &x
				} else {
					l.max = &x
				}
			})
			s.bounds[key] = l
		})
	}
	p.Stages = append(p.Stages, name)
	p.settings = append(p.settings, s)
	for _, b := range newFilter(name, s).Bounds {
		if b.Min > b.Max {
			r.fail(at, "bounds that a document can keep", "%s.%s has min %v above max %v", name, b.Name, b.Min, b.Max)
		}
	}
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
