package corpus

import (
	"anneal/internal/units"
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Reason is the reason why something was rejected or skipped.
type Reason string

// Reasons to skip; nothing is lost.
const (
	Hidden     Reason = "hidden"
	Extension  Reason = "extension not in --ext"
	Twice      Reason = "listed twice or a loop of links"
	NotRegular Reason = "not a regular file"
	Dangling   Reason = "link to a file that does not exist"
	Empty      Reason = "empty"
	Null       Reason = "text is null"
	NotText    Reason = "not text"
	NoMainText Reason = "no main text in the HTML"
	Made       Reason = "a data set or a run"
)

// Reasons of losses: documents that cannot be used, and files that cannot be read.
const (
	Binary       Reason = "binary (NUL or control bytes)" // a whole file is skipped; a document in a file is lost
	NotUTF8      Reason = "not UTF-8 (over a tenth of the bytes)"
	UTF16        Reason = "UTF-16 (convert it to UTF-8)"
	BadJSON      Reason = "broken JSON line"
	NoText       Reason = "no text field"
	TextNoString Reason = "text field is not a string"
	LongLine     Reason = "line too long"
	TooLong      Reason = "text too long"
	LongFields   Reason = "fields too long"
	LongOutput   Reason = "too long for a line of the output"
	BadRecord    Reason = "broken WARC record"
	BadBody      Reason = "HTTP body cannot be decoded"
	Unreadable   Reason = "unreadable"
	Corrupt      Reason = "damaged or cut off"
	Unsupported  Reason = "in a form that is not read"
	Bomb         Reason = "expands too far"
)

// Reject is one skipped or lost item. Documents and Bytes are the known losses.
type Reject struct {
	Source string `json:"source"` // path of the file
	// line, record of WARC or row of parquet, from 1; 0 if not applicable or, in a later part of a file, unknown
	Line      int    `json:"line,omitempty"`
	Offset    int64  `json:"offset"`              // bytes from the start of Source, after decompression; parquet: 0
	Reason    Reason `json:"reason"`              //
	Detail    string `json:"detail,omitempty"`    // the message of the parser or the system
	Documents int    `json:"documents,omitempty"` // lost
	Bytes     int64  `json:"bytes,omitempty"`     // of input lost
	Rest      bool   `json:"rest,omitempty"`      // the rest of the file is lost, not only one document
}

func (r Reject) place() string {
	s := r.Source
	if r.Line > 0 {
		s += fmt.Sprintf(":%d", r.Line)
	}
	if r.Offset > 0 {
		s += fmt.Sprintf(" (byte %d)", r.Offset)
	}
	if r.Detail != "" {
		s += ": " + r.Detail
	}
	return s
}

// alike reports whether two rejects are counted together: they have the same reason and the same kind of loss, if any.
func (r Reject) alike(o Reject) bool {
	return r.Reason == o.Reason && r.Rest == o.Rest && (r.Documents > 0) == (o.Documents > 0)
}

// RejectCount counts the rejects with the same reason, and lists the first few. It covers either skipped items, single
// lost documents, or files of which all or the rest was lost.
type RejectCount struct {
	Reason   Reason   `json:"reason"`
	Count    int      `json:"count"`
	Examples []Reject `json:"examples"` // the first three
}

// first returns the first example, or a Reject with only the reason if there is none.
func (c RejectCount) first() Reject {
	if len(c.Examples) == 0 {
		return Reject{Reason: c.Reason}
	}
	return c.Examples[0]
}

// Report accounts for a reading.
type Report struct {
	// opened; a file that is split counts with its first part
	Files       int           `json:"files"`
	Documents   int           `json:"documents"`    // delivered
	Bytes       int64         `json:"bytes"`        // of text delivered
	InvalidUTF8 int           `json:"invalid_utf8"` // documents delivered that are not wholly valid UTF-8
	Rejects     []RejectCount `json:"rejects"`      // in the order in which they first occurred
	// sum of the rejects that lose text; nil if there are none
	Lost       *Loss       `json:"lost,omitempty"`
	LeftFields []LeftField `json:"fields_left,omitempty"` // parquet columns that did not become fields
}

// LeftField is a field that documents do not keep.
type LeftField struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
	Source string `json:"source"` // first file with this field
}

const examples = 3

// Report returns the counts of the current or last call of Documents.
func (r *Reader) Report() Report {
	rep := r.report
	rep.Rejects = slices.Clone(rep.Rejects)
	if rep.Lost != nil {
		rep.Lost = rep.Lost.clone()
	}
	return rep
}

func (r *Reader) reject(rej Reject) {
	c := countOf(&r.report.Rejects, rej)
	if c.Count++; len(c.Examples) < examples {
		c.Examples = append(c.Examples, rej)
	}
	if rej.Documents > 0 || rej.Rest {
		if r.report.Lost == nil {
			r.report.Lost = new(Loss)
		}
		r.report.Lost.count(rej)
	}
	if r.opt.OnReject != nil {
		r.opt.OnReject(rej)
	}
}

// Count returns a report on items that were left out before reading began.
func Count(list []Reject) Report {
	var r Reader
	for _, rej := range list {
		r.reject(rej)
	}
	return r.report
}

// Undeliver counts delivered documents as lost; lost describes them.
func (r *Report) Undeliver(lost Report) {
	if r.Add(lost); lost.Lost != nil {
		r.Documents -= lost.Lost.Documents
		r.Bytes -= lost.Lost.Bytes
	}
}

// Rejected returns the number of items that were left out.
func (r Report) Rejected() (n int) {
	for _, c := range r.Rejects {
		n += c.Count
	}
	return n
}

// countOf returns the count in a list that rej belongs to; if there is none, it is added.
func countOf(list *[]RejectCount, rej Reject) *RejectCount {
	i := slices.IndexFunc(*list, func(c RejectCount) bool { return c.first().alike(rej) })
	if i < 0 {
		i = len(*list)
		*list = append(*list, RejectCount{Reason: rej.Reason})
	}
	return &(*list)[i]
}

// Add adds the report of another reading, whose documents follow.
func (r *Report) Add(o Report) {
	r.Files += o.Files
	r.Documents += o.Documents
	r.Bytes += o.Bytes
	r.InvalidUTF8 += o.InvalidUTF8
	r.Lost = r.Lost.Add(o.Lost)
	for _, add := range o.Rejects {
		c := countOf(&r.Rejects, add.first())
		c.Count += add.Count
		room := min(len(add.Examples), max(examples-len(c.Examples), 0))
		c.Examples = append(c.Examples[:len(c.Examples):len(c.Examples)], add.Examples[:room]...)
	}
	for _, f := range o.LeftFields {
		r.leave(f)
	}
}

// leave records a column that does not become a field, once by its name.
func (r *Report) leave(f LeftField) {
	known := slices.ContainsFunc(r.LeftFields, func(o LeftField) bool { return o.Name == f.Name })
	if !known && len(r.LeftFields) < maxLeftFields {
		r.LeftFields = append(r.LeftFields, f)
	}
}

const maxLeftFields = 100

// items returns the name of the items that a reason counts, if they are not documents.
var items = map[Reason]string{
	Hidden: "hidden entry", Extension: "file", Twice: "entry", NotRegular: "entry", Dangling: "link", Binary: "file",
	Unreadable: "file", Corrupt: "file", Unsupported: "file", Bomb: "file",
	Made: "directory", BadJSON: "line", LongLine: "line", BadRecord: "record", NoMainText: "page", BadBody: "record",
}

// Text describes a count for the user: "skipped 8 files (extension not in --ext), such as …".
func (c RejectCount) Text() string {
	unit, verb, first := items[c.Reason], "skipped", c.first()
	switch {
	case first.Rest:
		unit, verb = "file", "lost all or the rest of"
	case first.Documents > 0:
		verb = "lost"
		if unit == "file" { // a document in one
			unit = ""
		}
	}
	s := verb + " " + units.Count(c.Count, cmp.Or(unit, "document"))
	if c.Reason != Hidden {
		s += fmt.Sprintf(" (%s)", c.Reason)
	}
	if first.Source != "" {
		s += ", such as " + first.place()
	}
	return s
}

// String returns the report for the user: one line of totals and one line per reason.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "read %s, %s of text, from %s",
		units.Count(r.Documents, "document"), units.FormatSize(r.Bytes), units.Count(r.Files, "file"))
	if r.InvalidUTF8 > 0 {
		fmt.Fprintf(&b, "; %s with some bytes that are not UTF-8, which are kept", units.Commas(r.InvalidUTF8))
	}
	for _, c := range r.Rejects {
		b.WriteString("\n  " + c.Text())
	}
	for _, f := range r.LeftFields {
		b.WriteString("\n  " + f.Text())
	}
	return b.String()
}

// Text describes f for the user.
func (f LeftField) Text() string {
	return fmt.Sprintf("the field %q is dropped: %s (%s)", f.Name, f.Reason, f.Source)
}
