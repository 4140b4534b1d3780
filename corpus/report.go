package corpus

import (
	"fmt"
	"slices"
	"strings"
)

// Reason says why something was left out.
type Reason string

// The reasons. Those of the first group concern entries of a directory, those of the second files and documents.
const (
	Hidden       Reason = "hidden"
	Extension    Reason = "other file extension"
	Twice        Reason = "listed twice or a loop of links"
	NotRegular   Reason = "not a regular file"
	Unreadable   Reason = "unreadable"
	Empty        Reason = "empty"
	Binary       Reason = "binary (holds NUL bytes)"
	NotUTF8      Reason = "not UTF-8 (over a tenth of the bytes)"
	UTF16        Reason = "UTF-16 (convert it to UTF-8)"
	Corrupt      Reason = "damaged or cut off"
	Bomb         Reason = "expands too far"
	BadJSON      Reason = "broken JSON line"
	NoText       Reason = "no text field"
	TextNoString Reason = "text field is not a string"
	LongLine     Reason = "line too long"
	TooLong      Reason = "text too long"
	BadRecord    Reason = "broken WARC record"
	NoMainText   Reason = "no main text in the HTML"
	NotText      Reason = "not text"
)

// Reject is one thing left out.
type Reject struct {
	Source string `json:"source"`           // path of the file
	Line   int    `json:"line,omitempty"`   // or record of WARC, or row of parquet, from 1; 0 where that does not apply or, in a later part of a file, is not known
	Offset int64  `json:"offset"`           // bytes from the start of Source, after decompression; parquet: 0
	Reason Reason `json:"reason"`           //
	Detail string `json:"detail,omitempty"` // what the parser or the system said
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

// RejectCount is how often one reason applied, with the first few cases.
type RejectCount struct {
	Reason   Reason   `json:"reason"`
	Count    int      `json:"count"`
	Examples []Reject `json:"examples"` // the first three
}

// Report accounts for a reading.
type Report struct {
	Files       int           `json:"files"`        // opened; one of which a Split is a part counts with the first part
	Documents   int           `json:"documents"`    // delivered
	Bytes       int64         `json:"bytes"`        // of text delivered
	InvalidUTF8 int           `json:"invalid_utf8"` // documents delivered that are not wholly valid UTF-8
	Rejects     []RejectCount `json:"rejects"`      // by reason, in the order in which reasons first applied
}

const examples = 3

// Report accounts for what Documents has read so far.
func (r *Reader) Report() Report {
	rep := r.report
	rep.Rejects = slices.Clone(rep.Rejects)
	return rep
}

func (r *Reader) reject(rej Reject) {
	list := r.report.Rejects
	i := slices.IndexFunc(list, func(c RejectCount) bool { return c.Reason == rej.Reason })
	if i < 0 {
		i, list = len(list), append(list, RejectCount{Reason: rej.Reason})
		r.report.Rejects = list
	}
	list[i].Count++
	if len(list[i].Examples) < examples {
		list[i].Examples = append(list[i].Examples, rej)
	}
	if r.opt.OnReject != nil {
		r.opt.OnReject(rej)
	}
}

// String is the report for people: one line of totals and one for each reason.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d documents, %d bytes from %d files", r.Documents, r.Bytes, r.Files)
	if r.InvalidUTF8 > 0 {
		fmt.Fprintf(&b, "; %d not wholly valid UTF-8, kept as they are", r.InvalidUTF8)
	}
	for _, c := range r.Rejects {
		fmt.Fprintf(&b, "\n  left out %d × %s, such as %s", c.Count, c.Reason, c.Examples[0].place())
	}
	return b.String()
}
