package parquet

import (
	"errors"
	"fmt"
)

// ErrLongRow means that the fields of a row are longer than the limit. The next row can still be read.
var ErrLongRow = errors.New("the fields of the row are too long")

var errRow = errors.New("columns do not hold the same rows")

// Rows reads the columns besides the text in a row group, row by row. They may repeat and nest: the values of each
// column come as entries, whose repetition levels say in which list a new element begins, and whose definition levels
// say how many of the value's parents are present (Dremel, Melnik et al. 2010). Each column holds one page.
type Rows struct {
	f       *File
	limit   int
	quote   func(b, s []byte) []byte
	value   []byte
	size    int // bytes of the row's values so far
	entries int // of the row so far
}

// Rows begins to read a row group. A row may have up to limit bytes of JSON; quote appends a JSON string.
func (f *File) Rows(group, limit int, quote func(b, s []byte) []byte) (*Rows, error) {
	if f.fields == nil {
		return nil, nil
	}
	for _, c := range f.fields.columns {
		c.missing = true
	}
	f.chunks(f.Groups[group], func(i int, chunk chunk, _ uint32, fault error) {
		if c := f.fields.columns[i]; c != nil && c.fault == nil {
			c.begin(f, chunk)
		}
	})
	return &Rows{f: f, limit: limit, quote: quote}, nil
}

// chunks visits the footer's descriptions of the columns in a row group.
func (f *File) chunks(g Group, visit func(i int, c chunk, encodings uint32, fault error)) {
	t := thrift{b: f.footer, i: g.at}
	t.fields(func(id int, kind byte) bool {
		if id != 1 || kind != typeList {
			return false
		}
		t.elements(func(i int) {
			c, encodings, fault := readChunk(&t)
			visit(i, c, encodings, fault)
		})
		return true
	})
}

// Next delivers the fields of the next row, by their names, as JSON that is valid until member returns. It returns the
// number of column entries that it read, also with an error.
func (r *Rows) Next(member func(name string, value []byte)) (entries int, err error) {
	r.size, r.entries = 0, 0
	for _, n := range r.f.fields.nodes {
		r.value = r.value[:0]
		if err := r.write(n, 0); err != nil {
			return r.entries, err
		}
		if r.size += len(r.value); r.size <= r.limit {
			member(n.name, r.value)
		}
	}
	if r.size > r.limit {
		return r.entries, ErrLongRow
	}
	return r.entries, nil
}

// write appends a node whose first entry repeats at level rep.
func (r *Rows) write(n *node, rep int) error {
	if n.kind == isValue {
		return r.leaf(n, rep)
	}
	first := n.first()
	if err := first.peek(); err != nil {
		return err
	}
	if n.optional && first.def < n.def {
		r.value = append(r.value, "null"...)
		return r.pass(n, rep, n.def)
	}
	if n.kind == isStructure {
		r.value = append(r.value, '{')
		for i, c := range n.children {
			if i > 0 {
				r.value = append(r.value, ',')
			}
			r.value = append(r.quote(r.value, []byte(c.name)), ':')
			if err := r.write(c, rep); err != nil {
				return err
			}
		}
		r.value = append(r.value, '}')
		return nil
	}
	return r.elements(n, first, rep)
}

// elements appends a list or a map.
func (r *Rows) elements(n *node, first *column, rep int) error {
	open, end := byte('['), byte(']')
	if n.kind == isMap {
		open, end = '{', '}'
	}
	r.value = append(r.value, open)
	if first.def < n.elementDef {
		r.value = append(r.value, end)
		return r.pass(n, rep, n.elementDef)
	}
	for {
		if err := r.write(n.children[0], rep); err != nil {
			return err
		}
		if n.kind == isMap {
			r.value = append(r.value, ':')
			if err := r.write(n.children[1], rep); err != nil {
				return err
			}
		}
		if err := first.peek(); err != nil {
			return err
		}
		if first.rep < n.rep {
			r.value = append(r.value, end)
			return nil
		}
		r.value = append(r.value, ',')
		rep = n.rep
	}
}

// leaf appends the next value of a column.
func (r *Rows) leaf(n *node, rep int) error {
	c := n.column
	if err := r.take(c, rep); err != nil {
		return err
	}
	if c.def < c.maxDef {
		r.value = append(r.value, "null"...)
		return nil
	}
	v, err := c.next()
	if err == nil && r.bound(len(v)) {
		r.value, err = n.form.append(r.value, v, r.quote)
	}
	return err
}

// pass takes an entry of every column below a node that is absent at level def.
func (r *Rows) pass(n *node, rep, def int) error {
	if n.kind != isValue {
		for _, c := range n.children {
			if err := r.pass(c, rep, def); err != nil {
				return err
			}
		}
		return nil
	}
	if err := r.take(n.column, rep); err != nil {
		return err
	}
	if n.column.def >= def {
		return errRow
	}
	return nil
}

// take takes the current entry, which must repeat at level rep.
func (r *Rows) take(c *column, rep int) error {
	if err := c.peek(); err != nil {
		return err
	}
	if c.rep != rep {
		return fmt.Errorf("%w: %s", errRow, c.path)
	}
	c.ready = false
	if r.entries++; r.entries > r.limit {
		return fmt.Errorf("%w: a row has more than %d values", ErrPage, r.limit)
	}
	r.bound(0)
	return nil
}

// bound discards the row if n more bytes make it too long. The rest of the row is still read, to reach the next one.
func (r *Rows) bound(n int) bool {
	if r.size+len(r.value)+n <= r.limit {
		return true
	}
	r.size, r.value = r.limit+1, r.value[:0]
	return false
}

// first returns the first column below a node; its levels say how much of the node is present.
func (n *node) first() *column {
	for n.kind != isValue {
		n = n.children[0]
	}
	return n.column
}

// column reads the entries of a chunk.
type column struct {
	path           string
	maxRep, maxDef int
	pages          pages
	fault          error // why the column cannot be a field
	missing        bool  // in the current row group

	left       int64 // entries of the current page
	reps, defs hybrid
	next       func() ([]byte, error)

	ready    bool // whether there is a current entry
	rep, def int  // its levels; -1 after the last entry
}

func (c *column) begin(f *File, chunk chunk) {
	c.pages.begin(f, chunk)
	c.missing, c.left, c.ready = false, 0, false
}

// peek reads the next entry unless there is a current one.
func (c *column) peek() error {
	if c.ready {
		return nil
	}
	if c.missing {
		return fmt.Errorf("%w: %s", errRow, c.path)
	}
	for c.left == 0 {
		h, page, err := c.pages.next()
		if err == errEnd {
			c.ready, c.rep, c.def = true, -1, -1
			return nil
		}
		if err == nil {
			c.reps, c.defs, page, err = h.split(page, c.maxRep, c.maxDef)
		}
		if err == nil {
			c.next, err = c.pages.decoder(h.encoding, page)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.path, err)
		}
		c.left = h.values
	}
	var rep, def uint32
	var err error
	if c.maxRep > 0 {
		rep, err = c.reps.next()
	}
	if err == nil && c.maxDef > 0 {
		def, err = c.defs.next()
	}
	if err == nil && (int(rep) > c.maxRep || int(def) > c.maxDef) {
		err = errRow
	}
	c.left--
	c.ready, c.rep, c.def = true, int(rep), int(def)
	return err
}
