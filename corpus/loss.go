package corpus

import (
	"anneal/internal/units"
	"fmt"
	"strings"
)

// Loss describes how much of the input could not be used. The number of documents in an unreadable file, and of bytes
// missing from a truncated one, are unknown; the smallest possible number is counted.
type Loss struct {
	Documents int `json:"documents"`
	// bytes of input: of lines, records and texts; for unreadable files, bytes on disk
	Bytes     int64      `json:"bytes"`
	FileCount int        `json:"file_count"`      // files of which all or the rest is lost
	Files     []LostFile `json:"files,omitempty"` // the first hundred of these
}

// LostFile is a file of which all or a part could not be read.
type LostFile struct {
	Source    string `json:"source"`
	Reason    Reason `json:"reason"` // the first
	Detail    string `json:"detail,omitempty"`
	Documents int    `json:"documents"`
	Bytes     int64  `json:"bytes"`
}

const maxLostFiles = 100

func (l *Loss) count(r Reject) {
	l.Documents += r.Documents
	l.Bytes += r.Bytes
	if r.Rest {
		l.file(LostFile{r.Source, r.Reason, r.Detail, r.Documents, r.Bytes})
	}
}

// file adds a file. If it is the same as the last one, another part of that file is lost, and the loss is added to it.
func (l *Loss) file(f LostFile) {
	if n := len(l.Files); n > 0 && l.Files[n-1].Source == f.Source {
		l.Files[n-1].Documents += f.Documents
		l.Files[n-1].Bytes += f.Bytes
		return
	}
	if l.FileCount++; len(l.Files) < maxLostFiles {
		l.Files = append(l.Files, f)
	}
}

// Add returns the sum of the losses of two consecutive readings. Either may be nil.
func (l *Loss) Add(o *Loss) *Loss {
	if o == nil {
		return l
	}
	sum := new(Loss)
	if l != nil {
		sum = l.clone()
	}
	sum.Documents += o.Documents
	sum.Bytes += o.Bytes
	for _, f := range o.Files {
		sum.file(f)
	}
	sum.FileCount += o.FileCount - len(o.Files)
	return sum
}

func (l *Loss) clone() *Loss {
	c := *l
	c.Files = append([]LostFile(nil), l.Files...)
	return &c
}

// MaxLoss is the share of documents, and of bytes, that a command may lose in single documents and still succeed:
// 0.001 is a thousandth. A damaged, truncated or unreadable file is never tolerated.
type MaxLoss float64

// LossError means that more was lost than is tolerated. The rest of the input was used.
type LossError struct {
	Loss
	Max       MaxLoss
	Delivered Report // report on the whole input, which the loss is compared with
}

// Check returns a *LossError if too much of the input of rep was lost.
func (m MaxLoss) Check(rep Report) error {
	l := rep.Lost
	if l == nil {
		return nil
	}
	documents := float64(l.Documents) / float64(max(l.Documents+rep.Documents, 1))
	bytes := float64(l.Bytes) / float64(max(l.Bytes+rep.Bytes, 1))
	if l.FileCount == 0 && documents <= float64(m) && bytes <= float64(m) {
		return nil
	}
	return &LossError{Loss: *l, Max: m, Delivered: rep}
}

func (e *LossError) Error() string {
	var b strings.Builder
	if e.FileCount > 0 {
		fmt.Fprintf(&b, "%s could not be read to the end: at least %s and %s of input are lost",
			units.Count(e.FileCount, "file"), units.Count(e.Documents, "document"), units.FormatSize(e.Bytes))
		const shown = 10
		for _, f := range e.Files[:min(len(e.Files), shown)] {
			fmt.Fprintf(&b, "\n  %s: %s", f.Source, f.Reason)
			if f.Detail != "" {
				b.WriteString(" (" + f.Detail + ")")
			}
			fmt.Fprintf(&b, "; at least %s and %s lost", units.Count(f.Documents, "document"),
				units.FormatSize(f.Bytes))
		}
		if more := e.FileCount - shown; more > 0 {
			fmt.Fprintf(&b, "\n  and %s more", units.Commas(more))
		}
		return b.String()
	}
	all := e.Documents + e.Delivered.Documents
	fmt.Fprintf(&b, "%s of %s documents (%.2g %%) and %s could not be used; ",
		units.Commas(e.Documents), units.Commas(all),
		100*float64(e.Documents)/float64(max(all, 1)), units.FormatSize(e.Bytes))
	if e.Max == 0 {
		b.WriteString("none may be lost")
	} else {
		fmt.Fprintf(&b, "the limit is %.3g %% of the documents or bytes", 100*float64(e.Max))
	}
	for _, c := range e.Delivered.Rejects {
		if c.first().Documents > 0 {
			b.WriteString("\n  " + c.Text())
		}
	}
	return b.String()
}
