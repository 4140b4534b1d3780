package curate

// Key is the place of a document in the total order of an input: every choice between documents goes by it.
type Key struct {
	Source int // ordinal of the file
	Split  int // ordinal of the part of the file
	Row    int // ordinal of the document in the part
}

// Less orders keys.
func (k Key) Less(o Key) bool {
	if k.Source != o.Source {
		return k.Source < o.Source
	}
	if k.Split != o.Split {
		return k.Split < o.Split
	}
	return k.Row < o.Row
}

// Doc is a document on its way through the stages.
type Doc struct {
	Key     Key
	Source  string // path of the file it came from
	Text    []byte // set it with SetText, which forgets what was known of the old text
	Fields  []byte // besides the text: members of a JSON object, with commas between
	Signals []Signal

	moved  []byte // members that are written inside of "anneal", see corpus.Line
	offset int64  // where it starts in Source
	view   *view  // what rules share, made when first asked for
}

// Signal is a number that a stage found out about a document.
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

// Verdict is what a stage says about a document. The zero value keeps it.
type Verdict struct {
	Drop  bool
	Rule  string  // that drops it
	Value float64 // which the rule measured
}

// Stage looks at one document, may change its text, and says whether it stays. A stage belongs to one goroutine.
type Stage interface {
	Apply(d *Doc) Verdict
}
