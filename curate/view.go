package curate

// view holds the measurements of a text that rules share. Each part is computed once, when a rule first asks for it.
type view struct {
	text   []byte
	masks  maskSet
	lines  lineFacts
	words  wordFacts
	tokens tokenFacts
	grams  gramFacts
	have   facts

	seen, paragraphs table
}

type facts uint8

const (
	haveMasks facts = 1 << iota
	haveLines
	haveWords
	haveTokens
	haveGrams
)

// keepMost is the length of the longest text whose buffers are reused for the next text. Each worker thus keeps a few
// megabytes; the buffers of a longer text, up to a hundred times its length, are freed after it.
const keepMost = 1 << 20

// reusable returns a buffer for the next text: b, or nil if b has grown too large to keep.
func reusable(b []byte) []byte {
	if cap(b) > keepMost {
		return nil
	}
	return b[:0]
}

func (v *view) reset(text []byte) {
	if len(v.text) > keepMost {
		*v = view{}
	}
	v.text, v.have = text, 0
}

// first reports whether p has not been computed yet, and marks it as computed.
func (v *view) first(p facts) bool {
	missing := v.have&p == 0
	v.have |= p
	return missing
}

func (d *Doc) facts() *view {
	if d.view == nil {
		d.view = new(view)
		d.view.reset(d.Text)
	}
	return d.view
}

func (d *Doc) masks() *maskSet {
	v := d.facts()
	if v.first(haveMasks) {
		v.masks.scan(v.text)
	}
	return &v.masks
}

func (d *Doc) lineFacts() *lineFacts {
	m, v := d.masks(), d.view
	if v.first(haveLines) {
		v.lines.scan(v.text, m, &v.seen, &v.paragraphs)
	}
	return &v.lines
}

func (d *Doc) wordFacts() *wordFacts {
	m, v := d.masks(), d.view
	if v.first(haveWords) {
		v.words.scan(v.text, m)
	}
	return &v.words
}

func (d *Doc) tokenFacts() *tokenFacts {
	w, v := d.wordFacts(), d.view
	if v.first(haveTokens) {
		v.tokens.scan(v.text, &v.masks, w)
	}
	return &v.tokens
}

func (d *Doc) gramFacts() *gramFacts {
	t, v := d.tokenFacts(), d.view
	if v.first(haveGrams) {
		v.grams.scan(t, &v.seen)
	}
	return &v.grams
}
