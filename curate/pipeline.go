package curate

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"anneal/dedup"
)

// Pipeline is a list of stages, read from a file.
type Pipeline struct {
	Signals bool     // write the measurements of every document, including dropped ones
	Texts   bool     // also write the text after the first pass, so that bounds can be changed without measuring again
	Stages  []string // names, in order

	stages   []stage
	passes   []*pass
	hash     string
	measures string // hash of the first pass's measurements, without its bounds
}

// stage is one stage of a pipeline.
type stage struct {
	name    string
	kind    *kind
	bounds  []Bound
	options given
	make    func() Stage
	compare *dedup.Options // of a stage that needs all documents
}

// Problem is a mistake in a pipeline file.
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

// NewStages makes the stages for one goroutine. Outside of Run, stages that compare documents do nothing.
func (p *Pipeline) NewStages() []Stage { return newStages(p.stages) }

// Hash differs between pipelines that may decide differently. It covers the stages with all their bounds and options,
// and the bytes of the files that they need, but not the pipeline's own file.
func (p *Pipeline) Hash() string { return p.hash }

// Parse reads a pipeline, such as
//
//	signals: true
//	stages:
//	  - normalize
//	  - gopher_quality: {words: {min: 20}}
//	  - c4: {terminal_punctuation: false}
//
// A stage has its published bounds and default options unless the file gives others. Parse reads the files that stages
// need. A text is at most yaml.MaxBytes long. File is the pipeline's own name, for messages and as the base of the
// paths in it.
func Parse(text []byte, file string) (*Pipeline, error) {
	p := new(Pipeline)
	r := pipelineReader{file: file}
	r.pipeline(p, text)
	if r.err != nil {
		return nil, r.err
	}
	if len(p.stages) == 0 {
		return nil, &Problem{At: file, Message: "a pipeline without stages", Try: "stages: [normalize, gopher_quality]"}
	}
	p.passes = passesOf(p)
	all, measured := sha256.New(), sha256.New()
	fmt.Fprintln(all, "pipeline 2", p.Signals, p.Texts)
	for i := range p.stages {
		s := &p.stages[i]
		p.Stages = append(p.Stages, s.name)
		sum, err := s.sum()
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(all, sum, s.bounds)
		if i < len(p.passes[0].stages) {
			fmt.Fprintln(measured, sum)
		}
	}
	p.hash, p.measures = hex.EncodeToString(all.Sum(nil)), hex.EncodeToString(measured.Sum(nil))
	return p, nil
}

// sum returns a hash of everything that a stage's measurements depend on.
func (s *stage) sum() (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, s.name)
	for _, o := range s.kind.options {
		v := s.options[o.name]
		if !o.files {
			fmt.Fprintf(h, "%s %#v\n", o.name, v)
			continue
		}
		for _, path := range s.files(o) {
			sum, err := fileSum(path)
			if err != nil {
				return "", fmt.Errorf("stage %s: %w", s.name, err)
			}
			fmt.Fprintln(h, o.name, sum)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// files returns the paths that an option names.
func (s *stage) files(o option) []string {
	if !o.files {
		return nil
	}
	switch v := s.options[o.name].(type) {
	case []string:
		return v
	case string:
		if v != "" {
			return []string{v}
		}
	}
	return nil
}

// regular reports an error unless path is a regular file.
func regular(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	return err
}

// start makes a stage from its entry in the file.
func (s *stage) start() error {
	for _, o := range s.kind.options {
		v, ok := s.options[o.name]
		if list, is := v.([]string); o.required && (!ok || is && len(list) == 0) {
			return fmt.Errorf("stage %s needs %s", s.name, o.name)
		}
		if !ok {
			s.options[o.name] = o.value
		}
	}
	var err error
	if s.kind.compare != nil {
		s.compare, err = s.kind.compare(s.options)
		s.make = func() Stage { return &compared{name: s.name} }
	} else {
		s.make, err = s.kind.load(s.options)
	}
	if err != nil {
		return fmt.Errorf("stage %s: %w", s.name, err)
	}
	return nil
}

// rules returns the rules by which a stage drops documents.
func (s *stage) rules() (rules []Bound) {
	rules = slices.Clone(s.bounds)
	for _, name := range s.kind.rules {
		rules = append(rules, unbounded(name))
	}
	return rules
}

// tried separates the message of an error from its suggestion.
func tried(err error) (message, try string) {
	if p := (*Problem)(nil); errors.As(err, &p) {
		return p.Message, p.Try
	}
	message, try, _ = strings.Cut(err.Error(), "\n  try ")
	return message, try
}
