package gemm

import "sync/atomic"

// A deal assigns the tasks of a product to workers. A worker goes down one column of tasks, whose packed panels of b
// it keeps, then down the next unstarted column. When none is left, it helps with another worker's column.
type deal struct {
	down   int
	column atomic.Int64 // the first column not yet started
	next   []nextTask   // of each column
}

// A nextTask is the next task of a column; larger than down when all are taken. Each has its own cache line, because
// workers write them all the time.
type nextTask struct {
	atomic.Int64
	_ [56]byte
}

// reset prepares for across columns of down tasks.
func (d *deal) reset(down, across int) {
	if across > cap(d.next) {
		d.next = make([]nextTask, across)
	}
	d.next = d.next[:across]
	for i := range d.next {
		d.next[i].Store(0)
	}
	d.down = down
	d.column.Store(0)
}

// take returns a task for a worker whose last task was in column, initially −1. As many calls as there are tasks
// return each task once; further calls return that none is left.
func (d *deal) take(column int) (taken, row int, ok bool) {
	if column >= 0 {
		if row, ok := d.from(column); ok {
			return column, row, true
		}
	}
	for c := int(d.column.Add(1)) - 1; c < len(d.next); c = int(d.column.Add(1)) - 1 {
		if row, ok := d.from(c); ok {
			return c, row, true
		}
	}
	for c := range d.next {
		if row, ok := d.from(c); ok {
			return c, row, true
		}
	}
	return 0, 0, false
}

func (d *deal) from(column int) (row int, ok bool) {
	row = int(d.next[column].Add(1)) - 1
	return row, row < d.down
}

// after predicts the next task of the worker that has just taken one.
func (d *deal) after(column, row int) (int, int) {
	if row+1 < d.down {
		return column, row + 1
	}
	return min(int(d.column.Load()), len(d.next)-1), 0
}
