package dash

import (
	"context"
	"encoding/json"
	"math"
	"strconv"

	"anneal/internal/fileio"
)

// known says which buckets a client already has.
type known struct {
	generation, width, from int
}

// curves writes the buckets that a client lacks, as JSON: the positions on each axis and, for each number, the means
// and, if buckets hold several steps, the minima and maxima. The client asks again for its last bucket, which may have
// grown.
func (f *follower) curves(has known) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	from := has.from
	if has.generation != f.generation || has.width != f.table.width || from < 0 || from > len(f.table.x) {
		from = 0
	}
	return f.table.json(f.generation, from)
}

func (t *table) json(generation, from int) []byte {
	out := make([]byte, 0, 64<<10)
	out = append(out, `{"generation":`...)
	out = strconv.AppendInt(out, int64(generation), 10)
	out = append(out, `,"width":`...)
	out = strconv.AppendInt(out, int64(t.width), 10)
	out = append(out, `,"from":`...)
	out = strconv.AppendInt(out, int64(from), 10)
	out = append(out, `,"x":{"step":`...)
	out = t.axis(out, from, func(p place) float64 { return float64(p.step) })
	out = append(out, `,"tokens":`...)
	out = t.axis(out, from, func(p place) float64 { return p.tokens })
	out = append(out, `,"seconds":`...)
	out = t.axis(out, from, func(p place) float64 { return p.seconds })
	out = append(out, `,"flops":`...)
	out = t.axis(out, from, func(p place) float64 { return p.flops })
	out = append(out, `},"series":{`...)
	first := true
	for _, c := range t.columns {
		if from >= len(c.cells) {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out = c.json(out, c.cells[from:])
	}
	return append(out, "}}"...)
}

// axis writes the positions of buckets, with more digits than a screen can show.
func (t *table) axis(out []byte, from int, of func(place) float64) []byte {
	return list(out, len(t.x)-from, 12, func(i int) float64 { return of(t.x[from+i]) })
}

func (c *column) json(out []byte, cells []cell) []byte {
	several := false
	for i := range cells {
		several = several || cells[i].n > 1
	}
	out = append(quoted(out, c.name), `:{"mean":`...)
	out = list(out, len(cells), 7, func(i int) float64 { return cells[i].mean() })
	if several {
		out = append(out, `,"min":`...)
		out = list(out, len(cells), 6, func(i int) float64 { return cells[i].low() })
		out = append(out, `,"max":`...)
		out = list(out, len(cells), 6, func(i int) float64 { return cells[i].high() })
	}
	return append(out, '}')
}

// list writes n numbers with so many digits; numbers that are not finite become null.
func list(out []byte, n, digits int, at func(i int) float64) []byte {
	out = append(out, '[')
	for i := range n {
		if i > 0 {
			out = append(out, ',')
		}
		if x := at(i); math.IsNaN(x) || math.IsInf(x, 0) {
			out = append(out, "null"...)
		} else {
			out = strconv.AppendFloat(out, x, 'g', digits, 64)
		}
	}
	return append(out, ']')
}

// quoted appends a text as JSON.
func quoted(out []byte, text string) []byte {
	b, _ := json.Marshal(text) // a string always can be
	return append(out, b...)
}

// part reads steps of a file again, from one to another, as finely as a chart can show them. It gives up when ctx ends.
func (f *follower) part(ctx context.Context, from, to int) ([]byte, error) {
	p := &follower{path: f.path, piece: make([]byte, pieceBytes/16)}
	p.reset()
	f.mu.Lock()
	t := f.table
	for i := 0; i < len(t.x) && (i == 0 || t.x[i-1].step < from); i++ {
		p.read = t.x[i].offset
		if i > 0 {
			p.end = t.x[i-1]
		}
	}
	f.mu.Unlock()
	file, err := fileio.OpenRegular(f.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for more := true; more && p.end.step < to; {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if more, err = p.next(file); err != nil {
			return nil, err
		}
	}
	return p.table.json(0, 0), nil
}
