package parallel

import (
	"cmp"
	"slices"

	"anneal/device"
	"anneal/nn"
)

// Squares are the sums of the squares of a piece of a gradient, stretch by stretch.
type Squares struct {
	Param int // number of the parameter in the whole model
	Cut   int // which of the ranks that share layers has the piece
	From  int // its first element in the region of those ranks
	Part  int // number of the parameter's part that it covers; −1 for a run of stretches
	Sums  []float64
}

// counted returns how many elements at the start of a piece this rank counts in norms. It counts all, unless it is
// left to another rank that shares layers and has the whole parameter, or its partial rows, too. It counts none of the
// copy of a tied table.
func (s *Shard) counted(o *Owned) int {
	n := o.Piece.To - o.Piece.From
	switch p := o.Partial; {
	case s.Replica() && o.Piece.Param == 0:
		return 0
	case o.Region.Len() == o.Len():
		if s.Cut > 0 {
			return 0
		}
	case p != nn.Partial{} && p.Peers.From != s.Cut:
		width := o.Region.Len() / o.Region.Height()
		return min(max(p.Rows.From*width-o.Piece.From, 0), n)
	}
	return n
}

// Squares returns this rank's contribution to the norm of the gradient, given the sums of SquareSums.
func (s *Shard) Squares(sums []float64) (list []Squares) {
	for _, o := range s.Mine {
		if o.Counted > 0 {
			n := (o.Counted + device.Stretch - 1) / device.Stretch
			list = append(list, Squares{o.Number, s.Cut, o.Piece.From, o.Piece.Part, sums[o.Stretch : o.Stretch+n]})
		}
	}
	return list
}

// SquaredNorm returns the sum of squares over all parameters, from the contributions of all ranks. Unless params is
// nil, it also adds the sum of each parameter to params. It adds in the order of device.Squares: first the stretches
// of each parameter, or part of one, then these sums.
func SquaredNorm(list []Squares, params []float64) (total float64) {
	slices.SortFunc(list, func(a, b Squares) int {
		return cmp.Or(cmp.Compare(a.Param, b.Param), cmp.Compare(a.Cut, b.Cut), cmp.Compare(a.From, b.From))
	})
	sum := 0.0
	for i, p := range list {
		for _, x := range p.Sums {
			sum += x
		}
		if i+1 < len(list) && list[i+1].Part < 0 && list[i+1].Param == p.Param {
			continue
		}
		total += sum
		if params != nil {
			params[p.Param] += sum
		}
		sum = 0
	}
	return total
}
