package gemm

import "sync/atomic"

// A deal assigns the tasks of a product to workers. A worker goes down one column of tasks, whose packed panels of b
// it keeps, then down the next unstarted column. When none is left, it helps with another worker's column.
type deal struct {
	down   int
	column atomic.Int64   // the first column not yet started
	rows   []atomic.Int64 // the next task of each column; larger than down when all are taken
}

// reset prepares for across columns of down tasks.
func (d *deal) reset(down, across int) {
	if across > cap(d.rows) {
		d.rows = make([]atomic.Int64, across)
	}
	d.rows = d.rows[:across]
	for i := range d.rows {
		d.rows[i].Store(0)
	}
	d.down = down
	d.column.Store(0)
}

// take returns a task for a worker whose last task was in column, initially −1. As many calls as there are tasks
// return each task once.
func (d *deal) take(column int) (taken, row int) {
	if column >= 0 {
		if row, ok := d.from(column); ok {
			return column, row
		}
	}
	for c := int(d.column.Add(1)) - 1; c < len(d.rows); c = int(d.column.Add(1)) - 1 {
		if row, ok := d.from(c); ok {
			return c, row
		}
	}
	for c := range d.rows {
		if row, ok := d.from(c); ok {
			return c, row
		}
	}
	panic("gemm: more tasks requested than exist")
}

func (d *deal) from(column int) (row int, ok bool) {
	row = int(d.rows[column].Add(1)) - 1
	return row, row < d.down
}

// after predicts the next task of the worker that has just taken one.
func (d *deal) after(column, row int) (int, int) {
	if row+1 < d.down {
		return column, row + 1
	}
	return min(int(d.column.Load()), len(d.rows)-1), 0
}
