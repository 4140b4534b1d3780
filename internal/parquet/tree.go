package parquet

import (
	"fmt"
	"slices"
	"strings"
)

// maxColumns is the largest number of columns that become fields, as each holds a page.
const maxColumns = 1000

// Left is a column that Rows does not deliver.
type Left struct{ Name, Reason string }

// fields are the columns besides the text.
type fields struct {
	nodes   []*node         // nodes of the first level
	columns map[int]*column // by their ordinals
	left    []Left
	bytes   int64 // of their chunks in all row groups
	held    int64 // by their pages
}

// node is a field, or a part of one. Levels are those of Dremel (Melnik et al. 2010): an entry of a column repeats at
// level rep, and the node is present in it if its definition level is at least def.
type node struct {
	name     string
	kind     nodeKind
	optional bool // it is null below def
	def      int
	children []*node // of a structure; of a list the element, of a map key and value
	members  int64   // children of a structure, including those that are not fields

	rep, elementDef int // of lists and maps: the level at which an element begins, and the level from which one exists

	column *column // of a value
	form   form
}

type nodeKind int

const (
	isValue nodeKind = iota
	isStructure
	isList
	isMap
)

// treeReader converts the list of elements to nodes.
type treeReader struct {
	t     *thrift
	count uint64 // elements to come
	leaf  int    // ordinal of the next one
	text  int    // ordinal of the text
	out   *fields
	more  int // columns beyond maxColumns
}

// readTree converts the schema, which must have been checked, except the column of the text.
func readTree(t *thrift, text int) *fields {
	f := &fields{columns: map[int]*column{}}
	r := treeReader{t: t, text: text, out: f}
	_, r.count = t.list()
	r.count--
	for n := readElement(t).children; n > 0 && r.count > 0 && t.err == nil; n-- {
		if n := r.node("", 0, 0, 0); n != nil {
			f.nodes = append(f.nodes, n)
		}
	}
	if r.more > 0 {
		f.leave(fmt.Sprintf("and %d more", r.more), fmt.Sprintf("more than %d columns", maxColumns))
	}
	return f
}

// leave records that a column does not become a field.
func (f *fields) leave(name, reason string) {
	if len(f.left) < 2*namedLeaves {
		f.left = append(f.left, Left{name, reason})
	}
}

// node reads a node with all nodes below it; nil if none of them is a field.
func (r *treeReader) node(path string, rep, def, depth int) *node {
	if r.count == 0 || depth > maxDepth {
		r.t.fail(errThrift)
		return nil
	}
	r.count--
	e := readElement(r.t)
	path = strings.TrimPrefix(path+"."+e.name, ".")
	if len(path) > maxName {
		path = path[:maxName] + "…"
	}
	if e.repetition != required {
		def++
	}
	if e.repetition == repeated {
		rep++
	}
	n := &node{name: e.name, optional: e.repetition == optional, def: def}
	if e.children > 0 {
		n.kind, n.members = isStructure, e.children
		for i := e.children; i > 0 && r.count > 0 && r.t.err == nil; i-- {
			if c := r.node(path, rep, def, depth+1); c != nil {
				n.children = append(n.children, c)
			}
		}
		n = n.shaped(&e)
	} else {
		n = r.value(n, &e, path, rep, def)
	}
	if n != nil && e.repetition == repeated {
		n = &node{name: n.name, kind: isList, def: def - 1, children: []*node{n}, rep: rep, elementDef: def}
	}
	return n
}

// value makes n a column, if its type is supported.
func (r *treeReader) value(n *node, e *element, path string, rep, def int) *node {
	ordinal := r.leaf
	r.leaf++
	if ordinal == r.text {
		return nil
	}
	if len(r.out.columns) >= maxColumns {
		r.more++
		return nil
	}
	form, leaf, reason := e.form()
	if reason != "" {
		r.out.leave(path, reason)
		return nil
	}
	n.form = form
	n.column = &column{path: path, maxRep: rep, maxDef: def}
	n.column.pages.leaf = leaf
	n.column.pages.held = &r.out.held
	r.out.columns[ordinal] = n.column
	return n
}

// shaped turns a group into the structure, the list or the map that it represents. A list is a group with one repeated
// child, whose only child is the element; older writers make the repeated child the element itself.
func (n *node) shaped(e *element) *node {
	if len(n.children) == 0 {
		return nil
	}
	list := e.logical == logicalList || e.logical == 0 && e.converted == convertedList
	mapping := e.logical == logicalMap ||
		e.logical == 0 && (e.converted == convertedMap || e.converted == convertedMapKeyValue)
	c := n.children[0]
	if e.children != 1 || c.kind != isList || !list && !mapping {
		return n
	}
	inner := c.children[0]
	n.rep, n.elementDef = c.rep, c.elementDef
	switch {
	case mapping && inner.kind == isStructure && inner.members == 2 && len(inner.children) == 1:
		return nil // a map needs keys and values
	case mapping && inner.kind == isStructure && len(inner.children) == 2 &&
		inner.children[0].form.kind == formString && inner.children[0].kind == isValue:
		n.kind, n.children = isMap, inner.children
	case list && inner.kind == isStructure && inner.members == 1 && len(inner.children) == 1 && c.name != "array" &&
		c.name != n.name+"_tuple":
		n.kind, n.children = isList, inner.children
	default:
		n.kind, n.children = isList, []*node{inner}
	}
	return n
}

// survey checks the chunks of a row group: a column with an unsupported chunk does not become a field.
func (f *fields) survey(file *File, g Group) error {
	if g.Rows == 0 {
		return nil
	}
	var err error
	file.chunks(g, func(i int, c chunk, encodings uint32, fault error) {
		column := f.columns[i]
		switch {
		case column == nil:
			return
		case fault == nil:
			fault = checkCodec(c.codec)
		}
		for e := int64(0); e < 32 && fault == nil; e++ {
			if encodings>>e&1 == 1 && e != encodingRLE && e != encodingBitPacked && !column.pages.leaf.reads(e) {
				fault = fmt.Errorf("%w: values in encoding %d", ErrUnsupported, e)
			}
		}
		if fault != nil {
			column.fault = fault
			return
		}
		if !c.within(file.size) {
			err = errThrift
		}
		f.bytes += c.bytes
	})
	return err
}

// settle leaves out the columns in which survey found a fault.
func (f *fields) settle(size int64) error {
	if f.bytes > size { // columns share bytes
		return errThrift
	}
	f.nodes = slices.DeleteFunc(f.nodes, func(n *node) bool { return !n.sound(f) })
	return nil
}

// sound reports whether a part of a node can be read. It removes unreadable children of a structure; a list or map is
// removed as a whole.
func (n *node) sound(f *fields) bool {
	if n.kind == isValue {
		if n.column.fault != nil {
			f.leave(n.column.path, strings.TrimPrefix(n.column.fault.Error(), ErrUnsupported.Error()+": "))
		}
		return n.column.fault == nil
	}
	before := len(n.children)
	n.children = slices.DeleteFunc(n.children, func(c *node) bool { return !c.sound(f) })
	return len(n.children) > 0 && (n.kind == isStructure || len(n.children) == before)
}
