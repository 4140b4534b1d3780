package dash

import (
	"math"
)

// buckets is how many points of a number are kept: as many as the widest screen shows. When a run needs more, each
// pair of buckets becomes one.
const buckets = 2048

// maxColumns bounds the numbers of one run, such as the norms of a hundred layers.
const maxColumns = 1024

// A table reduces the numbers of a run to buckets: steps first + i·width to first + (i+1)·width - 1 are bucket i,
// which keeps the smallest, the largest and the mean of each number. It takes steps in their order, one at a time.
type table struct {
	first, width int
	last         int // step; 0 before the first
	x            []place
	columns      []*column
	index        map[string]int
	hint         []int // the columns of the previous line's fields: most lines have the same
	dropped      bool  // a number found no column
}

// A place is the position of a bucket on the axes: the end of its last step. Unknown numbers are NaN.
type place struct {
	step    int
	tokens  float64
	seconds float64 // of training
	flops   float64
	offset  int64 // of its first line in the file
}

// A column holds one number, by bucket.
type column struct {
	name  string
	cells []cell // shorter than the table if the last buckets lack the number
}

type cell struct {
	min, max float32
	n        uint32
	sum      float64
}

func (c *cell) add(x float64) {
	if math.IsNaN(x) {
		return
	}
	v := float32(x)
	if c.n == 0 {
		c.min, c.max = v, v
	}
	c.min, c.max = min(c.min, v), max(c.max, v)
	c.n++
	c.sum += x
}

// merge adds the contents of another bucket.
func (c *cell) merge(o cell) {
	switch {
	case o.n == 0:
	case c.n == 0:
		*c = o
	default:
		*c = cell{min(c.min, o.min), max(c.max, o.max), c.n + o.n, c.sum + o.sum}
	}
}

// mean, low and high return NaN for a cell without a number.
func (c cell) mean() float64 { return c.sum / float64(c.n) }

func (c cell) low() float64 { return c.orNaN(c.min) }

func (c cell) high() float64 { return c.orNaN(c.max) }

func (c cell) orNaN(x float32) float64 {
	if c.n == 0 {
		return math.NaN()
	}
	return float64(x)
}

func newTable() *table { return &table{width: 1, index: map[string]int{}} }

// isAxis reports whether a number says where a step lies on an axis, not how it went.
func isAxis(name []byte) bool {
	switch string(name) {
	case "step", "tokens", "flops", "step_seconds", "rewound":
		return true
	}
	return false
}

// add takes the numbers of a step that ends at a place.
func (t *table) add(at place, fields []field) {
	if t.last == 0 {
		t.first = at.step
	}
	t.last = max(t.last, at.step)
	i := (at.step - t.first) / t.width
	for i >= buckets {
		t.halve()
		i = (at.step - t.first) / t.width
	}
	if i < 0 {
		return
	}
	for n := len(t.x); n <= i; n++ { // buckets of missing lines are empty and lie at the end of the previous bucket
		end := at
		if n > 0 {
			end = t.x[n-1]
			end.offset = at.offset
		}
		t.x = append(t.x, end)
	}
	at.offset = t.x[i].offset
	t.x[i] = at
	for k, f := range fields {
		if c := t.column(k, f.name); c != nil {
			c.at(i).add(f.value)
		}
	}
}

// column finds the column of the k-th field of a line, or makes one; nil for an axis.
func (t *table) column(k int, name []byte) *column {
	if k < len(t.hint) {
		if c := t.hint[k]; c >= 0 && t.columns[c].name == string(name) {
			return t.columns[c]
		}
	}
	if isAxis(name) {
		return nil
	}
	c, ok := t.index[string(name)]
	if !ok {
		if len(t.columns) == maxColumns {
			t.dropped = true
			return nil
		}
		c = len(t.columns)
		t.columns = append(t.columns, &column{name: string(name)})
		t.index[string(name)] = c
	}
	for len(t.hint) <= k {
		t.hint = append(t.hint, -1)
	}
	t.hint[k] = c
	return t.columns[c]
}

// at returns the cell of a bucket.
func (c *column) at(i int) *cell {
	for len(c.cells) <= i {
		c.cells = append(c.cells, cell{})
	}
	return &c.cells[i]
}

// halve merges each pair of buckets into one.
func (t *table) halve() {
	t.width *= 2
	for i := 0; 2*i < len(t.x); i++ {
		offset := t.x[2*i].offset
		t.x[i] = t.x[min(2*i+1, len(t.x)-1)]
		t.x[i].offset = offset
	}
	t.x = t.x[:(len(t.x)+1)/2]
	for _, c := range t.columns {
		n := (len(c.cells) + 1) / 2
		for i := range n {
			both := c.cells[2*i]
			if 2*i+1 < len(c.cells) {
				both.merge(c.cells[2*i+1])
			}
			c.cells[i] = both
		}
		c.cells = c.cells[:n]
	}
}

// newest returns the mean of a number in the last bucket that has it, and its step; NaN if none has.
func (t *table) newest(name string) (mean float64, step int) {
	c, ok := t.index[name]
	if !ok {
		return math.NaN(), 0
	}
	cells := t.columns[c].cells
	for i := len(cells) - 1; i >= 0; i-- {
		if cells[i].n > 0 {
			return cells[i].mean(), t.x[i].step
		}
	}
	return math.NaN(), 0
}
