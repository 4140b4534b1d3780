package curate

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"anneal/corpus"
)

// Report says what became of the documents. It is the same for any number of workers and tasks and after any stop.
type Report struct {
	Files     int             `json:"files"`      // read
	Documents int             `json:"documents"`  // that went in
	Bytes     int64           `json:"bytes"`      // of their text
	Kept      int             `json:"kept"`       // documents that came out
	KeptBytes int64           `json:"kept_bytes"` // of their text, as it is then
	Stages    []StageReport   `json:"stages"`     // in order
	Rejects   []corpus.Reject `json:"rejects"`    // what could not be read: the first of each split
	Rejected  int             `json:"rejected"`   // how many
}

// StageReport says what one stage did.
type StageReport struct {
	Name     string       `json:"name"`
	Changed  int          `json:"changed"`   // documents whose text it changed, and kept
	BytesCut int64        `json:"bytes_cut"` // that their texts became shorter; negative if longer
	Rules    []RuleReport `json:"rules"`
}

// RuleReport says what one rule dropped.
type RuleReport struct {
	Name      string    `json:"name"`
	Min       *float64  `json:"min,omitempty"` // what it demands
	Max       *float64  `json:"max,omitempty"`
	Documents int       `json:"documents"` // dropped
	Bytes     int64     `json:"bytes"`     // of the text that went in
	Examples  []Example `json:"examples"`  // drawn from all of them by a hash of their places
}

// Example is one dropped document.
type Example struct {
	Draw   uint64  `json:"draw"`
	Source string  `json:"source"`
	Offset int64   `json:"offset"` // bytes from the start of Source, after decompression
	Value  float64 `json:"value"`  // which the rule measured
	Text   string  `json:"text"`   // its start
}

const (
	examples     = 5
	exampleBytes = 240
)

func newReport(p *Pipeline) Report {
	var r Report
	for _, stage := range p.stages {
		s := StageReport{Name: stage.name}
		for _, b := range stage.rules() {
			s.Rules = append(s.Rules, RuleReport{Name: b.Name, Min: finite(b.Min), Max: finite(b.Max)})
		}
		r.Stages = append(r.Stages, s)
	}
	return r
}

func finite(v float64) *float64 {
	if math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// drop counts a document that a stage dropped.
func (r *Report) drop(stage int, key Key, in corpus.Document, v Verdict) {
	s := &r.Stages[stage]
	i := slices.IndexFunc(s.Rules, func(x RuleReport) bool { return s.Name+"."+x.Name == v.Rule })
	rule := &s.Rules[i]
	rule.Documents++
	rule.Bytes += int64(len(in.Text))
	draw := placeHash(v.Rule, key)
	if n := len(rule.Examples); n == examples && draw >= rule.Examples[n-1].Draw {
		return
	}
	rule.example(Example{Draw: draw, Source: in.Source, Offset: in.Offset, Value: v.Value, Text: start(in.Text)})
}

// example keeps the examples with the smallest draws, in order.
func (r *RuleReport) example(e Example) {
	r.Examples = append(r.Examples, e)
	slices.SortStableFunc(r.Examples, func(a, b Example) int {
		switch {
		case a.Draw < b.Draw:
			return -1
		case a.Draw > b.Draw:
			return 1
		}
		return strings.Compare(a.Source, b.Source)
	})
	r.Examples = r.Examples[:min(len(r.Examples), examples)]
}

// start is the beginning of a text, of whole characters.
func start(text []byte) string {
	if len(text) > exampleBytes {
		n := exampleBytes
		for n > exampleBytes-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		text = text[:n]
	}
	return strings.ToValidUTF8(string(text), "\ufffd")
}

// read adds what a reading left out.
func (r *Report) read(in corpus.Report) {
	r.Files += in.Files
	for _, c := range in.Rejects {
		r.Rejected += c.Count
		r.Rejects = append(r.Rejects, c.Examples...)
	}
	r.Rejects = r.Rejects[:min(len(r.Rejects), examples)]
}

// listing adds what the walk of the directories left out.
func (r *Report) listing(list []corpus.Reject) {
	r.Rejected += len(list)
	r.Rejects = append(r.Rejects, list[:min(len(list), examples)]...)
}

// add adds the report of a part.
func (r *Report) add(o Report) {
	r.Files += o.Files
	r.Documents += o.Documents
	r.Bytes += o.Bytes
	r.Kept += o.Kept
	r.KeptBytes += o.KeptBytes
	r.Rejected += o.Rejected
	if room := maxRejects - len(r.Rejects); room > 0 {
		r.Rejects = append(r.Rejects, o.Rejects[:min(len(o.Rejects), room)]...)
	}
	for i := range o.Stages {
		s := &r.Stages[i]
		s.Changed += o.Stages[i].Changed
		s.BytesCut += o.Stages[i].BytesCut
		for j, rule := range o.Stages[i].Rules {
			s.Rules[j].Documents += rule.Documents
			s.Rules[j].Bytes += rule.Bytes
			for _, e := range rule.Examples {
				s.Rules[j].example(e)
			}
		}
	}
}

const maxRejects = 100

// Left says what could not be read, for people; "" if nothing.
func (r Report) Left() string {
	if r.Rejected == 0 {
		return ""
	}
	first := r.Rejects[0]
	s := fmt.Sprintf("left out %d files, pieces or lines, such as %s: %s", r.Rejected, first.Source, first.Reason)
	if first.Detail != "" {
		s += " (" + first.Detail + ")"
	}
	return s
}

// write writes report.json and report.html, each at once.
func (r *Report) write(dir string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(dir, "report.json"), append(b, '\n')); err != nil {
		return err
	}
	page, err := r.HTML()
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, "report.html"), page)
}

func replaceFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}
