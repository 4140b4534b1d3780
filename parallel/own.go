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
// dealt part by part to the rank that has the least: the tables of the first unit before everything else, the others at
// the end, largest first.
//
// Ranks that share layers own the same parts, although the tables that tensor parallelism cuts may differ by a row
// between them: runs of elements in the units of such tables do not count, and a part counts as much as on the rank
// that has the most of it.
func Deal(units [][]*nn.Param, ranks int, divide func(p *nn.Param) optim.Division) []Piece {
	var pieces []Piece
	var parts []part
	load := make([]int, ranks) // elements
	deal := func(p part) {
		p.Owner = slices.Index(load, slices.Min(load))
		load[p.Owner] += p.size
		pieces = append(pieces, p.Piece)
	}
	param := 0
	for u, unit := range apart(units) {
		first, all := param, 0
		for _, p := range unit {
			switch d := divide(p); {
			case d == optim.Elements:
				all += p.Region.Len()
			case u < len(units[0]):
				for _, x := range partsOf(p, param, d) {
					deal(x)
				}
			default:
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
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.size, a.size) })
	for _, p := range parts {
		deal(p)
	}
	slices.SortFunc(pieces, func(a, b Piece) int {
		return cmp.Or(cmp.Compare(a.Param, b.Param), cmp.Compare(a.From, b.From))
	})
	return pieces
}

// apart returns units in which each table of the first unit is a unit of its own. A tied table is the first, so it has
// the same owners in both stages of a pipeline that have it.
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

// A part is a piece that is not divided further.
type part struct {
	Piece
	size int // elements, on the rank of tensor parallelism that has the most
}

// partsOf returns the parts of a fused weight, or all of a parameter, without owners.
func partsOf(p *nn.Param, number int, d optim.Division) (list []part) {
	if d == optim.Indivisible || len(p.Parts) == 0 {
		x := part{Piece{Param: number, To: p.Region.Len()}, p.Region.Len()}
		for _, r := range p.Regions {
			x.size = max(x.size, r.Len())
		}
		return []part{x}
	}
	from, width := 0, p.Region.Cols.Len()
	for i, of := range p.Parts {
		rows := of.Rows
		if p.Cut == autograd.Outputs { // its region has a span of rows for each part
			rows = p.Region.Rows[i].Len()
		}
		to := from + rows*width
		list = append(list, part{Piece{number, from, to, i, 0}, to - from})
		from = to
	}
	return list
}
