package parallel

import (
	"cmp"
	"slices"
	"sort"

	"anneal/autograd"
	"anneal/device"
	"anneal/nn"
	"anneal/optim"
)

// A Piece is a run of a parameter's elements that one rank owns: its gradient is summed there, and its optimizer state
// and its authoritative weights live there.
type Piece struct {
	Param    int // number of the parameter in the model
	From, To int // elements of this rank's region
	Part     int // number of the parameter's part that it covers; −1 for a run of stretches
	Owner    int // rank
}

// Deal assigns the pieces of a model, given as units (model.Decoder.UnitParams), to ranks. Pieces are in the order of
// parameters and elements, and are the same on every rank.
//
// The parameters of a unit, laid end to end, are cut into one run per rank, at multiples of device.Stretch elements of
// a parameter. So the sums of squares and the blocks of 8-bit optimizers are the same as without cuts. If a unit has
// few stretches, some ranks get none. Parameters that the optimizer can only divide into parts, or not at all, are
// dealt part by part, largest first, to the rank that has the least. Tables that tensor parallelism cuts do not count
// for this, nor do their units, because their sizes may differ by a row; so ranks that share layers own the same
// parts.
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
			for _, run := range runs(p.Region.Len(), done, all, ranks) {
				run.Param = first + i
				pieces = append(pieces, run)
				if !table {
					load[run.Owner] += run.To - run.From
				}
			}
			done += p.Region.Len()
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

// apart returns units in which each table of the first unit is a unit of its own, so that a tied table has the same
// owners in both stages of a pipeline that have it.
func apart(units [][]*nn.Param) (list [][]*nn.Param) {
	for _, p := range units[0] {
		list = append(list, []*nn.Param{p})
	}
	return append(list, units[1:]...)
}

// runs cuts the n elements of a parameter, which begin at element `at` of the `all` that ranks share, into one run for
// each owner. The owner of a stretch is the rank whose share contains its middle. The ends of runs are found by binary
// search, since a parameter can have 10⁸ stretches.
func runs(n, at, all, ranks int) (list []Piece) {
	bounds := func(i int) (from, to int) { return i * device.Stretch, min((i+1)*device.Stretch, n) }
	owner := func(i int) int {
		from, to := bounds(i)
		return (2*(at+from) + to - from) * ranks / (2 * all)
	}
	stretches := (n + device.Stretch - 1) / device.Stretch
	for i := 0; i < stretches; {
		mine := owner(i)
		next := i + sort.Search(stretches-i, func(j int) bool { return owner(i+j) > mine })
		from, _ := bounds(i)
		_, to := bounds(next - 1)
		list = append(list, Piece{From: from, To: to, Part: -1, Owner: mine})
		i = next
	}
	return list
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
