package curate

import "fmt"

// Key is the place of a document in the order of an input. If one of several documents must be chosen, the one with
// the smallest key is.
type Key struct {
	Source int // ordinal of the file
	Split  int // ordinal of the part of the file
	Row    int // ordinal of the document in the part
}

func (k Key) String() string {
	return fmt.Sprintf("%d of part %d of file %d", k.Row, k.Split, k.Source)
}

// Doc is a document in the pipeline.
type Doc struct {
	Key     Key
	Source  string // path of the file it came from
	Text    []byte // use SetText to change it, which drops the measurements of the old text
	Fields  []byte // besides the text: members of a JSON object, with commas between
	Signals []Signal

	moved  []byte // members that are written inside of "anneal", see corpus.Line
	offset int64  // where it starts in Source
	view   *view  // measurements that rules share, made on first use
}

// Signal is a measurement of a document.
type Signal struct {
	Name  string
	Value float64
}

// Add records a number about the document.
func (d *Doc) Add(name string, value float64) { d.Signals = append(d.Signals, Signal{name, value}) }

// SetText replaces the text.
func (d *Doc) SetText(text []byte) {
	d.Text = text
	if d.view != nil {
		d.view.reset(text)
	}
}

// Verdict is a stage's decision about a document. The zero value keeps it.
type Verdict struct {
	Drop  bool
	Rule  string  // the rule that drops it
	Value float64 // what the rule measured
}

// Stage looks at one document, may change its text, and decides whether it stays. A stage belongs to one goroutine.
type Stage interface {
	Apply(d *Doc) Verdict
}
