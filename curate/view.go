package curate

// view is what rules share about a text: each part is made once, when a rule first asks for it.
type view struct {
	text      []byte
	lines     lineFacts
	words     wordFacts
	grams     gramFacts
	haveLines bool
	haveWords bool
	haveGrams bool
	seen      table
}

func (v *view) reset(text []byte) {
	v.text = text
	v.haveLines, v.haveWords, v.haveGrams = false, false, false
}

func (d *Doc) facts() *view {
	if d.view == nil {
		d.view = new(view)
		d.view.reset(d.Text)
	}
	return d.view
}

func (d *Doc) lineFacts() *lineFacts {
	v := d.facts()
	if !v.haveLines {
		v.lines.scan(v.text, &v.seen)
		v.haveLines = true
	}
	return &v.lines
}

func (d *Doc) wordFacts() *wordFacts {
	v := d.facts()
	if !v.haveWords {
		v.words.scan(v.text)
		v.haveWords = true
	}
	return &v.words
}

func (d *Doc) gramFacts() *gramFacts {
	w := d.wordFacts()
	v := d.view
	if !v.haveGrams {
		v.grams.scan(w, &v.seen)
		v.haveGrams = true
	}
	return &v.grams
}

// table counts hashes. It is emptied in no time: a slot of an older generation is free.
type table struct {
	slots      []slot
	mask       uint64
	generation uint32
}

type slot struct {
	hash       uint64
	generation uint32
	n          uint32
}

// reset empties the table and makes room for n hashes.
func (t *table) reset(n int) {
	t.generation++
	size := 64
	for size < 2*n {
		size *= 2
	}
	if size > len(t.slots) {
		t.slots = make([]slot, size)
		t.generation = 1
	} else if t.generation == 0 {
		clear(t.slots)
		t.generation = 1
	}
	t.mask = uint64(size - 1)
}

// add adds one to the count of a hash and returns its slot.
func (t *table) add(hash uint64) uint32 {
	for i := hash & t.mask; ; i = (i + 1) & t.mask {
		s := &t.slots[i]
		if s.generation != t.generation {
			*s = slot{hash, t.generation, 1}
			return uint32(i)
		}
		if s.hash == hash {
			s.n++
			return uint32(i)
		}
	}
}
