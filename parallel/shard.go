package parallel

import (
	"fmt"

	"anneal/comm"
	"anneal/device"
	"anneal/nn"
	"anneal/optim"
	"anneal/precision"
	"anneal/tensor"
)

// The names of the arenas of a Shard, besides those of its tables and state.
const (
	Parameters    = "parameters"         // the weights that computing reads: all, or at stage 3 the owned pieces
	Gradients     = "gradients"          // all gradients, or from stage 2 on the sums of the owned pieces
	MasterWeights = "master weights"     // of owned pieces, if computing reads narrower copies
	Fold          = "gradient fold"      // sums of the owned pieces, if all gradients are kept
	Slots         = "gradient slots"     // gradients being sent
	Received      = "received gradients" // from other ranks
	Gathered      = "gathered weights"   // of the units that are computing
)

// Lag is the number of units whose gradients may be in flight while backward continues.
const Lag = 2

// Options decide which tensors of a model a rank keeps, and in which formats.
type Options struct {
	Stage  int            // of ZeRO, 0 to 3
	Micro  int            // the most micro-batches of a step
	Block  int            // micro-batches that a rank sums before it sends their gradient
	Wire   precision.Wire // the format in which gradients are sent
	Seed   uint64         // of its rounding
	Divide func(p *nn.Param) optim.Division
	// Formats returns the format in which a weight is updated, and the format in which computing reads it.
	Formats func(p *nn.Param) (master, compute tensor.DType)
	Grad    tensor.DType // of gradients
	Cut     int          // this rank's number among those that share layers
	Tied    comm.Comm    // the first and the last stage of a pipeline with a tied table; else nil
	Apart   bool         // computing may read other weights than the authoritative ones (Show)
}

// An Owned is a piece of a parameter on the rank that owns it. Value holds its authoritative weights, Grad the sum of
// its gradients.
type Owned struct {
	*nn.Param
	Piece   Piece
	Stretch int // number of its first stretch among the counted stretches of Mine
	Counted int // the number of its first elements that only this rank counts in norms and saves

	value, grad tensor.Tensor  // in one dimension
	copy        *tensor.Tensor // the copy that computing reads, if separate
	shown       *tensor.Tensor // the source of the copy: value, or another tensor of its length
}

// A Shard is one rank's part of a model in training.
type Shard struct {
	Options
	Pieces []Piece  // of all ranks
	Mine   []*Owned // in the order of Pieces

	world comm.Comm
	dev   device.Device
	units []unit

	senders int  // ranks with a micro-batch in this round
	add     bool // add to the sums of earlier rounds
	back    bool // the sums go back to all
	key     precision.WireKey
	first   bool         // the micro-batch is the first of a block
	last    bool         // it is the last one
	under   []int        // units whose gradients are in flight, oldest first
	summed  []int        // stage 0: units whose sums must still be sent back, oldest first
	filled  [Lag + 1]int // stages 2 and 3: by slot, the unit whose gradients were last in it; 0 for none
	terms   []*tensor.Tensor
	decoded tensor.Tensor // int8: a piece as numbers
	tie     *tie          // for a tied table in a pipeline; else nil
	slots   [2]int        // stage 3: by slot, the unit whose weights are in it; 0 for none

	// Folding is called before terms of a piece are added, in their order; it may be nil.
	Folding func(o *Owned, terms []*tensor.Tensor)
}

// unit is a run of the model between whose forward and backward passes weights arrive and gradients leave.
type unit struct {
	params []*nn.Param
	first  int     // number of the first of them in the model
	pieces []Piece // of all ranks
	mine   []*Owned

	adding    Adding            // of the micro-batches of a block
	coded     []precision.Coded // gradients in the format of the wire, by parameter, unless it is F32
	gradients comm.Transfer     // of a micro-batch, to the owners
	totals    comm.Transfer     // stage 0: sums, to all
	weights   comm.Transfer     // from the owners
	copies    [][]tensor.Tensor // the weights that computing reads, by owner
	sums      [][]tensor.Tensor // stage 0: gradients, by owner
	moving    bool              // weights are in flight
	senders   int               // of the gradients in flight
	add       bool              // they are added to the sums of earlier rounds
	back      bool              // the sums are then sent back to all ranks
}

// New lays out this rank's part of a model, given as units of declared parameters. arena returns the arena with a
// name. With measuring arenas and comm/absent, New only measures.
func New(o Options, world comm.Comm, dev device.Device, list [][]*nn.Param, arena func(string) *tensor.Arena) *Shard {
	s := &Shard{Options: o, Pieces: Deal(list, world.Size(), o.Divide), world: world, dev: dev}
	first, rest := 0, s.Pieces
	for _, params := range list {
		u := unit{params: params, first: first}
		first += len(params)
		for len(rest) > 0 && rest[0].Param < first {
			u.pieces, rest = append(u.pieces, rest[0]), rest[1:]
		}
		for _, p := range u.pieces {
			if p.Owner == world.Rank() {
				u.mine = append(u.mine, &Owned{Piece: p})
			}
		}
		s.Mine = append(s.Mine, u.mine...)
		s.units = append(s.units, u)
	}
	s.layWeights(arena)
	s.layGradients(arena)
	s.layTied(arena)
	if s.Wire == precision.WireInt8 {
		s.layDecoded(arena(Slots))
	}
	stretches := 0
	for u := range s.units {
		for _, o := range s.units[u].mine {
			s.units[u].own(o)
			o.Stretch, o.Counted = stretches, s.counted(o)
			if counted := o.grad.Slice(0, o.Counted); o.Counted > 0 {
				stretches += device.Stretches(&counted)
			}
		}
	}
	return s
}

// own completes a piece whose Value and Grad are laid out.
func (u *unit) own(o *Owned) {
	value, grad := o.value, o.grad
	p := *u.params[o.Piece.Param-u.first]
	o.Param = &p
	if o.Piece.Part >= 0 && len(p.Shape) == 2 { // optimizers of whole parts read rows
		width := p.Region.Cols.Len()
		value, grad = value.Reshape(value.Len()/width, width), grad.Reshape(value.Len()/width, width)
		if p.Region.Len() > o.value.Len() {
			p.Parts = p.Parts[o.Piece.Part : o.Piece.Part+1]
		}
	}
	p.Value, p.Grad, p.First = value, grad, o.Piece.From
}

// cut returns the pieces of the tensors of a unit's parameters, weights or gradients, by owner.
func (u *unit) cut(tensors []*tensor.Tensor, ranks int) [][]tensor.Tensor {
	list := make([][]tensor.Tensor, ranks)
	for _, p := range u.pieces {
		t := tensors[p.Param-u.first]
		flat := t.Reshape(t.Len())
		list[p.Owner] = append(list[p.Owner], flat.Slice(p.From, p.To))
	}
	return list
}

func (u *unit) values() (list []*tensor.Tensor) {
	for _, p := range u.params {
		list = append(list, &p.Value)
	}
	return list
}

func (u *unit) grads() (list []*tensor.Tensor) {
	for _, p := range u.params {
		list = append(list, &p.Grad)
	}
	return list
}

// toAll returns the lists of a rank that sends the same tensors to every rank.
func toAll(x []tensor.Tensor, ranks int) [][]tensor.Tensor {
	list := make([][]tensor.Tensor, ranks)
	for r := range list {
		list[r] = x
	}
	return list
}

// ring lays units 1, 2, … of a model out over slots in turn; units in the same slot share memory. The arena may be nil
// if nothing is allocated.
func (s *Shard) ring(a *tensor.Arena, slots int, lay func(i int)) {
	if a == nil {
		return
	}
	for k := range slots {
		start := a.Mark()
		end := start
		for i := 1 + k; i < len(s.units); i += slots {
			a.Release(start)
			lay(i)
			end = max(end, a.Mark())
		}
		a.Release(end)
	}
}

func (u *unit) name(what string) string {
	if len(u.params) == 0 {
		return what + " of nothing"
	}
	return fmt.Sprintf("%s of %s", what, u.params[0].Name)
}
