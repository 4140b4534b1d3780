//go:build cuda && linux

package cuda

import (
	"fmt"

	"anneal/device"
	"anneal/device/cuda/driver"
	"anneal/tensor"
)

// CopyRuns implements device.Device.
func (d *Device) CopyRuns(dst, src *tensor.Tensor, r device.Runs) {
	const op = "CopyRuns"
	checkRows(op, dst, src)
	inside(op, "dst", dst, r.To, r.Count, r.Rows, r.Cols)
	inside(op, "src", src, r.From, r.Count, r.Rows, r.Cols)
	c := d.begin("parts", "copy_runs", dst.DType(), stored("S", src))
	c.pointer(place(dst, r.To))
	c.pointer(place(src, r.From))
	c.int(r.Rows)
	c.int(r.Cols)
	c.int(r.To.Step)
	c.int(dst.Cols())
	c.int(r.From.Step)
	c.int(src.Cols())
	c.bool(r.Add)
	c.launch(r.Count*r.Rows, rowThreads(r.Cols, normThreads), 0)
}

// place returns the address of the first element at a place.
func place(t *tensor.Tensor, p device.Place) driver.Pointer {
	return driver.Pointer(t.Pointer()) + driver.Pointer((p.Row*t.Cols()+p.Col)*t.DType().Size())
}

// inside panics unless runs of rows lie in t.
func inside(op, name string, t *tensor.Tensor, p device.Place, runs, rows, cols int) {
	last := p.Row + max(runs-1, 0)*p.Step + rows
	if p.Row < 0 || p.Step < 0 || p.Col < 0 || last > t.Rows() || p.Col+cols > t.Cols() {
		panic(fmt.Sprintf("cuda: %s: %s is %v, too small for %d runs of %d rows and %d columns at %+v",
			op, name, t, runs, rows, cols, p))
	}
}

// MergeAttention implements device.Device: one launch, or one per head if each has its own shift.
func (d *Device) MergeAttention(out, lse, part, partLSE *tensor.Tensor, heads device.Heads, m device.Merge) {
	const op = "MergeAttention"
	shape(op, "out", out, out.Rows(), heads.Q*heads.Size)
	shape(op, "part", part, part.Rows(), heads.Q*heads.Size)
	checkRows(op, out, part)
	checkWide(op, "lse", lse, heads.Q*out.Rows(), arithmetic(out))
	checkWide(op, "partLSE", partLSE, heads.Q*part.Rows(), arithmetic(out))
	inside(op, "out", out, m.To, m.Count, m.Rows, out.Cols())
	inside(op, "part", part, m.From, m.Count, m.Rows, out.Cols())
	if m.Shift != nil && len(m.Shift) != heads.Q {
		panic(fmt.Sprintf("cuda: %s: %d shifts for %d heads", op, len(m.Shift), heads.Q))
	}
	if m.Shift == nil {
		d.mergeHeads(out, lse, part, partLSE, heads, m, 0, heads.Q, 0)
		return
	}
	for h, shift := range m.Shift {
		d.mergeHeads(out, lse, part, partLSE, heads, m, h, 1, shift)
	}
}

// mergeHeads merges count heads, from head on, whose shift is the same.
func (d *Device) mergeHeads(out, lse, part, partLSE *tensor.Tensor, heads device.Heads, m device.Merge,
	head, count int, shift float64) {
	c := d.begin("parts", "merge_attention", out.DType(), stored("S", part))
	c.tensor(out)
	c.tensor(lse)
	c.tensor(part)
	c.tensor(partLSE)
	for _, n := range []int{head, heads.Q, heads.Size, out.Rows(), part.Rows(), m.Rows, m.To.Row, m.To.Step,
		m.From.Row, m.From.Step} {
		c.int(n)
	}
	c.bool(m.Fresh)
	c.real(shift)
	c.grid(m.Count*m.Rows, count, 1, 32, 0)
}
