package parallel

import (
	"cmp"
	"slices"

	"anneal/autograd"
	"anneal/device"
	"anneal/nn"
	"anneal/optim"
)

// A Piece is a run of a parameter's elements that one rank owns: its gradient is summed there, and its optimizer state
// and its authoritative weights live there.
type Piece struct {
	Param    int // number of the parameter in the model
	From, To int // elements of what is here
	Part     int // the part of the parameter that it is; −1 for a run of stretches
	Owner    int // rank
}

// Deal says which rank owns what of a model, given as units (model.Decoder.UnitParams). Pieces come in the order of
// parameters and elements, and are the same on every rank.
//
// The parameters of a unit, laid end to end, are cut into as many runs as there are ranks, at multiples of
// device.Stretch elements of a parameter: so the sums of squares and the blocks of 8-bit optimizers are those of the
// whole. A unit of few stretches leaves ranks without. Parameters that the optimizer can only divide into parts, or not
// at all, go part by part, largest first, to the rank that has least. The tables that tensor parallelism cuts do not
// count for that, nor do their units, since they may differ by a row: so ranks that share layers own the same parts.
func Deal(units [][]*nn.Param, ranks int, divide func(p *nn.Param) optim.Division) []Piece {
	var pieces, parts []Piece
	load := make([]int, ranks) // elements
	param := 0
	for _, unit := range apart(units) {
		first, all := param, 0
		for _, p := range unit {
			if d := divide(p); d == optim.Elements {
				all += p.Region.Len()
			} else {
				parts = append(parts, partsOf(p, param, d)...)
			}
			param++
		}
		done, table := 0, slices.ContainsFunc(unit, func(p *nn.Param) bool { return p.Rows.All > 0 })
		for i, p := range unit {
			if divide(p) != optim.Elements {
				continue
			}
			n := p.Region.Len()
			for from := 0; from < n; from += device.Stretch {
				to := min(from+device.Stretch, n)
				owner := (2*done + to - from) * ranks / (2 * all) // by its middle
				done += to - from
				if !table {
					load[owner] += to - from
				}
				pieces = extend(pieces, Piece{first + i, from, to, -1, owner})
			}
		}
	}
	slices.SortStableFunc(parts, func(a, b Piece) int { return cmp.Compare(b.To-b.From, a.To-a.From) })
	for _, p := range parts {
		p.Owner = slices.Index(load, slices.Min(load))
		load[p.Owner] += p.To - p.From
		pieces = append(pieces, p)
	}
	slices.SortFunc(pieces, func(a, b Piece) int {
		return cmp.Or(cmp.Compare(a.Param, b.Param), cmp.Compare(a.From, b.From))
	})
	return pieces
}

// apart are units of which the tables of the first are dealt one by one, so that a tied one has the same owners in
// every stage of a pipeline that has it.
func apart(units [][]*nn.Param) (list [][]*nn.Param) {
	for _, p := range units[0] {
		list = append(list, []*nn.Param{p})
	}
	return append(list, units[1:]...)
}

// extend appends a stretch, which belongs to the last piece if it continues it.
func extend(pieces []Piece, p Piece) []Piece {
	if n := len(pieces); n > 0 {
		if last := &pieces[n-1]; last.Param == p.Param && last.Owner == p.Owner && last.To == p.From {
			last.To = p.To
			return pieces
		}
	}
	return append(pieces, p)
}

// partsOf returns the parts of a fused weight, or all of a parameter, without owners.
func partsOf(p *nn.Param, number int, d optim.Division) []Piece {
	if d == optim.Indivisible || len(p.Parts) == 0 {
		return []Piece{{number, 0, p.Region.Len(), 0, 0}}
	}
	var list []Piece
	from, width := 0, p.Region.Cols.Len()
	for i, part := range p.Parts {
		rows := part.Rows
		if p.Cut == autograd.Outputs { // its region has a span of rows for each part
			rows = p.Region.Rows[i].Len()
		}
		to := from + rows*width
		list = append(list, Piece{number, from, to, i, 0})
		from = to
	}
	return list
}
