package parallel

import (
	"cmp"
	"slices"

	"anneal/device"
)

// Squares are the sums of the squares of a piece of a gradient, stretch by stretch.
type Squares struct {
	Param int // number of the parameter in the whole model
	Cut   int // which of the ranks that share layers has the piece
	From  int // its first element of what is there
	Part  int // the part of the parameter that it is; −1 for a run of stretches
	Sums  []float64
}

// Squares returns what this rank contributes to the norm of the gradient, given the sums of its pieces: all pieces but
// those that another rank counts, too. tensor is the rank's number among those that share layers.
func (s *Shard) Squares(sums []float64, tensor int) (list []Squares) {
	for _, o := range s.Mine {
		n := device.Stretches(&o.grad)
		whole := o.Param.Region.Len() == o.Param.Len()
		if replica := s.Replica() && o.Piece.Param == 0; !replica && (tensor == 0 || !whole) {
			x := Squares{Param: o.Number, From: o.Piece.From, Part: o.Piece.Part, Sums: sums[o.Stretch : o.Stretch+n]}
			if !whole {
				x.Cut = tensor
			}
			list = append(list, x)
		}
	}
	return list
}

// SquaredNorm returns the sum of squares over all parameters, from what all ranks contribute. It adds them in the order
// of device.Squares: stretch by stretch for each parameter, or part of one, then those.
func SquaredNorm(list []Squares) float64 {
	slices.SortFunc(list, func(a, b Squares) int {
		return cmp.Or(cmp.Compare(a.Param, b.Param), cmp.Compare(a.Cut, b.Cut), cmp.Compare(a.From, b.From))
	})
	total, sum := 0.0, 0.0
	for i, p := range list {
		if i > 0 && (p.Part >= 0 || p.Param != list[i-1].Param) {
			total, sum = total+sum, 0
		}
		for _, x := range p.Sums {
			sum += x
		}
	}
	return total + sum
}
