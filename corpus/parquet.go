package corpus

import (
	"errors"
	"fmt"
	"slices"

	"anneal/internal/parquet"
)

// rows delivers the rows of the row groups of p. A null skips its row; damage loses the rest of its row group.
func (c *cutter) rows(disk *meter, onDisk int64, p part) error {
	opt := &c.r.opt
	f, err := parquet.Open(disk, onDisk, opt.TextField, opt.Fields)
	if err != nil {
		return c.badRows(disk, 0, Reject{Bytes: c.onDisk}, err)
	}
	for _, l := range f.Left() {
		c.r.report.leave(LeftField{l.Name, l.Reason, c.source})
	}
	c.offset = p.at
	if p == whole && !slices.ContainsFunc(f.Groups, func(g parquet.Group) bool { return g.Rows > 0 }) {
		c.pass(0, Empty, "")
	}
	var expanded int64
	for i := p.from; i < min(p.to, int64(len(f.Groups))); i++ {
		g := f.Groups[i]
		end := c.offset + g.Rows
		err := c.rowGroup(f, int(i), disk, &expanded)
		if err != nil {
			left := end - c.offset
			rest := Reject{Documents: int(left), Bytes: share(g.Bytes, left, g.Rows)}
			if err = c.badRows(disk, c.offset+1, rest, err); err != nil {
				return err
			}
		}
		c.offset = end
	}
	return nil
}

// rowGroup delivers the rows of one.
func (c *cutter) rowGroup(f *parquet.File, group int, disk *meter, expanded *int64) error {
	opt := &c.r.opt
	others, err := f.Rows(group, opt.MaxLine, AppendString)
	if err != nil {
		return err
	}
	o := &c.line
	return f.Values(group, func(value []byte) error {
		long := false
		o.fields, o.moved = o.fields[:0], o.moved[:0]
		*expanded += 1 + int64(len(value))
		if others != nil {
			entries, err := others.Next(o.column)
			*expanded += int64(entries + len(o.fields) + len(o.moved))
			if long = errors.Is(err, parquet.ErrLongRow); err != nil && !long {
				return err
			}
		}
		if *expanded > freeExpansion+int64(opt.MaxRatio)*disk.n {
			return fmt.Errorf("%w: %d bytes became more than %d", errBomb, disk.n, *expanded)
		}
		err := c.row(value, long)
		c.offset++
		return err
	})
}

// column stores the value of a column.
func (o *object) column(name string, value []byte) {
	o.name = AppendString(o.name[:0], []byte(name))
	o.fields, o.moved = appendField(o.fields, o.moved, o.name, value)
}

// row delivers a row's text with the current fields. If long is true, the fields were too long to keep.
func (c *cutter) row(value []byte, long bool) error {
	number := int(c.offset + 1)
	reason, valid, detail := Reason(""), false, ""
	switch {
	case value == nil:
		c.r.reject(Reject{Source: c.source, Line: number, Reason: Null})
		return nil
	case len(value) == 0:
		c.r.reject(Reject{Source: c.source, Line: number, Reason: Empty})
		return nil
	case len(value) > c.r.opt.MaxLine:
		reason = TooLong
	case long:
		reason, detail = LongFields, fmt.Sprintf("more than %d bytes", c.r.opt.MaxLine)
	default:
		reason, valid = judge(value)
	}
	if reason != "" {
		lost := Reject{
			Source: c.source, Line: number, Reason: reason, Detail: detail, Documents: 1, Bytes: int64(len(value)),
		}
		c.r.reject(lost)
		return nil
	}
	return c.deliver(owned(value, c.line.fields, c.line.moved), valid)
}

// badRows rejects the rest of a row group or, if row is 0, the file. It returns errors that are not the file's fault.
func (c *cutter) badRows(disk *meter, row int64, rest Reject, err error) error {
	switch {
	case disk.err != nil, errors.Is(err, errStop), errors.Is(err, errBomb):
		return err
	case errors.Is(err, parquet.ErrNoColumn):
		rest.Reason = NoText
	case errors.Is(err, parquet.ErrNoText):
		rest.Reason = TextNoString
	case errors.Is(err, parquet.ErrPage):
		rest.Reason = TooLong
	case errors.Is(err, parquet.ErrUnsupported):
		rest.Reason = Unsupported
	default:
		rest.Reason = Corrupt
	}
	rest.Source, rest.Line, rest.Detail = c.source, int(row), err.Error()
	rest.Rest, rest.Documents = true, max(rest.Documents, 1)
	c.r.reject(rest)
	return nil
}
