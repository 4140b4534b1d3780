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
	"anneal/dedup"
	"anneal/internal/fileio"
)

// Report describes what happened to the documents. It is identical whatever the workers, tasks or interruptions.
type Report struct {
	Input     corpus.Report `json:"input"`      // what was read, left out and lost
	Documents int           `json:"documents"`  // that went in
	Bytes     int64         `json:"bytes"`      // of their text
	Kept      int           `json:"kept"`       // documents that came out
	KeptBytes int64         `json:"kept_bytes"` // of their text at the end
	Stages    []StageReport `json:"stages"`     // in order

	Comparisons []dedup.Report `json:"comparisons,omitempty"` // of the dedup stages, in order
}

// StageReport describes the effect of one stage.
type StageReport struct {
	Name     string       `json:"name"`
	Changed  int          `json:"changed"`   // documents whose text it changed, and kept
	BytesCut int64        `json:"bytes_cut"` // bytes by which their texts became shorter; negative if longer
	Rules    []RuleReport `json:"rules"`
}

// RuleReport describes the documents that one rule dropped.
type RuleReport struct {
	Name      string    `json:"name"`
	Min       *float64  `json:"min,omitempty"` // its bounds
	Max       *float64  `json:"max,omitempty"`
	Documents int       `json:"documents"` // dropped
	Bytes     int64     `json:"bytes"`     // bytes of their text before the stage
	Examples  []Example `json:"examples"`  // chosen from all dropped documents by a hash of their places
}

// Example is one dropped document.
type Example struct {
	Draw   uint64  `json:"draw"`
	Source string  `json:"source"`
	Offset int64   `json:"offset"` // bytes from the start of Source, after decompression
	Value  float64 `json:"value"`  // what the rule measured
	Text   string  `json:"text"`   // its start
}

const (
	examples     = 5
	exampleBytes = 240
)

func newReport(stages []stage) Report {
	var r Report
	for _, stage := range stages {
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

// change counts a document that a stage made shorter.
func (r *Report) change(stage, cut int) {
	r.Stages[stage].Changed++
	r.Stages[stage].BytesCut += int64(cut)
}

// drop counts a document of so many bytes that a stage dropped; text is its example.
func (r *Report) drop(stage int, d *Doc, text []byte, bytes int, v Verdict) {
	s := &r.Stages[stage]
	i := slices.IndexFunc(s.Rules, func(x RuleReport) bool { return s.Name+"."+x.Name == v.Rule })
	rule := &s.Rules[i]
	rule.Documents++
	rule.Bytes += int64(bytes)
	draw := placeHash(v.Rule, d.Key)
	if n := len(rule.Examples); n == examples && draw >= rule.Examples[n-1].Draw {
		return
	}
	rule.example(Example{Draw: draw, Source: d.Source, Offset: d.offset, Value: v.Value, Text: start(text)})
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

// start returns the beginning of a text, cut between characters.
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

// add adds the report of a split in a pass.
func (r *Report) add(p *pass, o Report) {
	if p.number == 0 {
		r.Input.Add(o.Input)
		r.Documents += o.Documents
		r.Bytes += o.Bytes
	}
	if p.last {
		r.Kept += o.Kept
		r.KeptBytes += o.KeptBytes
	}
	for i := range o.Stages {
		s := &r.Stages[p.first+i]
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

// write writes report.json and report.html, each atomically. A temporary file of a killed process has the name of its
// task, so that the next process replaces it.
func (r *Report) write(dir string, task int) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(dir, "report.json"), append(b, '\n'), task); err != nil {
		return err
	}
	page, err := r.HTML()
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, "report.html"), page, task)
}

func replaceFile(path string, content []byte, task int) error {
	f, err := os.Create(fmt.Sprintf("%s.%d.tmp", path, task))
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(content); err != nil {
		return err
	}
	return fileio.Put(f, path)
}

// report adds up the finished work.
func (r *runner) report() (Report, error) {
	sum := newReport(r.o.Pipeline.stages)
	sum.Input = corpus.Count(r.origin.listing())
	for k, p := range r.passes {
		if e := r.state.compared[k]; e != nil {
			t, err := e.tally()
			if err != nil {
				return sum, err
			}
			sum.Comparisons = append(sum.Comparisons, t.Comparisons...)
		}
		for _, e := range r.state.maps[k] {
			if e == nil {
				continue
			}
			t, err := e.tally()
			if err != nil {
				return sum, err
			}
			sum.add(p, t)
		}
	}
	return sum, nil
}
