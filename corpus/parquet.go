package corpus

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"anneal/internal/parquet"
)

// rows delivers the text column of the row groups of p. A null is rejected by itself, a damaged row group from where the
// damage is.
func (c *cutter) rows(disk *meter, onDisk int64, p part) error {
	f, err := parquet.Open(disk, onDisk, c.r.opt.TextField)
	if err != nil {
		return c.badColumn(disk, 0, err)
	}
	c.offset = p.at
	if p == whole && !slices.ContainsFunc(f.Groups, func(g parquet.Group) bool { return g.Rows > 0 }) {
		c.reject(0, Empty, "")
	}
	var expanded int64
	for g := p.from; g < min(p.to, int64(len(f.Groups))); g++ {
		end := c.offset + f.Groups[g].Rows
		err := f.Values(int(g), func(value []byte) error {
			expanded += 1 + int64(len(value))
			if expanded > freeExpansion+int64(c.r.opt.MaxRatio)*disk.n {
				return fmt.Errorf("%w: %d bytes became more than %d", errBomb, disk.n, expanded)
			}
			reason, valid, detail := Reason(""), false, ""
			switch {
			case value == nil:
				reason, detail = NoText, "null"
			case len(value) == 0:
				reason = Empty
			case len(value) > c.r.opt.MaxLine:
				reason = TooLong
			default:
				reason, valid = judge(value)
			}
			if reason != "" {
				c.rejectRow(c.offset+1, reason, detail)
			} else if err := c.deliver(bytes.Clone(value), valid); err != nil {
				return err
			}
			c.offset++
			return nil
		})
		if err != nil {
			if err = c.badColumn(disk, c.offset+1, err); err != nil {
				return err
			}
		}
		c.offset = end
	}
	return nil
}

// rejectRow leaves out a row, which counts from 1.
func (c *cutter) rejectRow(row int64, reason Reason, detail string) {
	c.r.reject(Reject{Source: c.source, Line: int(row), Reason: reason, Detail: detail})
}

// badColumn rejects a row group or, if row is 0, the file. It returns the errors that are no fault of the file's.
func (c *cutter) badColumn(disk *meter, row int64, err error) error {
	switch {
	case disk.err != nil, errors.Is(err, errStop), errors.Is(err, errBomb):
		return err
	case errors.Is(err, parquet.ErrNoColumn):
		c.rejectRow(row, NoText, err.Error())
	case errors.Is(err, parquet.ErrNoText):
		c.rejectRow(row, TextNoString, err.Error())
	case errors.Is(err, parquet.ErrPage):
		c.rejectRow(row, TooLong, err.Error())
	default:
		c.rejectRow(row, Corrupt, err.Error())
	}
	return nil
}
