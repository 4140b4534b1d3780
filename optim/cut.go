package optim

import (
	"anneal/autograd"
	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// Cut applies a rule that needs whole parameters, such as Muon or Adafactor, to parameters that tensor parallelism has
// cut. The peers gather the weights, the gradient and the state of each element; every peer computes the update of the
// whole parameter and keeps its own part. So the result has the same bits as without cuts. State of rows or columns is
// whole on every peer.
//
// Each update moves (t−1)/t of the whole weights, gradient and state from each of t peers, computes t times what one
// rank would, and takes scratch memory for all three.
type Cut struct {
	Optimizer
	Peers autograd.Peers

	out, room []tensor.Tensor
	state     State
	whole     nn.Param
}

// Divide returns the division of the rule.
func (c *Cut) Divide(p *nn.Param) Division { return Divide(c.Optimizer, p) }

// gathers reports whether the update of p needs the parts that peers have.
func (c *Cut) gathers(p *nn.Param) bool {
	return p.Cut != autograd.Whole && Divide(c.Optimizer, p) != Elements
}

// Layout implements Optimizer.
func (c *Cut) Layout(a *tensor.Arena, p *nn.Param) State {
	if !c.gathers(p) {
		return c.Optimizer.Layout(a, p)
	}
	sizes := tensor.NewMeasure("whole")
	state := c.Optimizer.Layout(sizes, c.wholeOf(sizes, p))
	for i := range state {
		shape := state[i].Shape()
		if state[i].Every == 1 {
			shape = p.Value.Shape()
		}
		state[i].Tensor = a.New(state[i].DType(), shape...)
	}
	return state
}

// wholeOf returns p as it would be without cuts, with memory in a.
func (c *Cut) wholeOf(a *tensor.Arena, p *nn.Param) *nn.Param {
	c.whole = *p
	shape := p.Shape
	if len(shape) == 2 {
		shape = []int{p.Shape[0], p.Shape[1]}
		if !isAll(p) {
			shape[0] = p.Parts[0].Rows
		}
	}
	c.whole.Value = a.New(p.Value.DType(), shape...)
	c.whole.Grad = a.New(wide(p), shape...)
	return &c.whole
}

// isAll reports whether p is this rank's whole region of the parameter, not a piece of it.
func isAll(p *nn.Param) bool { return p.Value.Len() == p.Region.Len() }

// Update implements Optimizer.
func (c *Cut) Update(d device.Device, p *nn.Param, state State, s Step, scratch *tensor.Arena) {
	if !c.gathers(p) {
		c.Optimizer.Update(d, p, state, s, scratch)
		return
	}
	mark := scratch.Mark()
	whole := c.wholeOf(scratch, p)
	c.gather(d, &whole.Value, &p.Value, p, scratch)
	c.gather(d, &whole.Grad, &p.Grad, p, scratch)
	c.state = append(c.state[:0], state...)
	for i := range state {
		if e := &c.state[i]; e.Every == 1 {
			e.Tensor = scratch.New(e.DType(), whole.Value.Shape()...)
			c.gather(d, &e.Tensor, &state[i].Tensor, p, scratch)
		}
	}
	c.Optimizer.Update(d, whole, c.state, s, scratch)
	c.keep(d, &p.Value, &whole.Value, p)
	for i := range state {
		if state[i].Every == 1 {
			c.keep(d, &state[i].Tensor, &c.state[i].Tensor, p)
		}
	}
	scratch.Release(mark)
}

// gather collects the parts of all peers of a tensor with p's shape in whole; mine is this rank's part.
func (c *Cut) gather(d device.Device, whole, mine *tensor.Tensor, p *nn.Param, scratch *tensor.Arena) {
	mark, rows := scratch.Mark(), c.rows(mine, p)
	c.out, c.room = c.out[:0], c.room[:0]
	for r := range c.Peers.Size() {
		var room tensor.Tensor
		if first, end := rowsOf(p, r); r != c.Peers.Rank() && !c.Peers.InPlace() {
			room = scratch.New(mine.DType(), end-first, width(p, r))
		}
		c.out, c.room = append(c.out, rows), append(c.room, room)
	}
	in := c.Peers.Exchange(c.out, c.room)
	for r := range in {
		c.copyPart(d, &in[r], whole, p, r, true)
	}
	c.Peers.Release()
	scratch.Release(mark)
}

// rows returns x, this rank's part of a tensor with p's shape, as a matrix.
func (c *Cut) rows(x *tensor.Tensor, p *nn.Param) tensor.Tensor {
	w := width(p, c.Peers.Rank())
	return x.Reshape(x.Len()/w, w)
}

// keep copies this rank's part of whole, a tensor with p's shape, to mine.
func (c *Cut) keep(d device.Device, mine, whole *tensor.Tensor, p *nn.Param) {
	rows := c.rows(mine, p)
	c.copyPart(d, &rows, whole, p, c.Peers.Rank(), false)
}

// width returns how many columns of p peer r has.
func width(p *nn.Param, r int) int {
	if len(p.Shape) == 1 {
		return 1
	}
	return p.Regions[r].Cols.Len()
}

// rowsOf returns the rows of the piece p within the rows that peer r has of the parameter.
func rowsOf(p *nn.Param, r int) (first, end int) {
	if isAll(p) {
		return 0, p.Regions[r].Height()
	}
	first = p.First / p.Value.Cols()
	return first, first + p.Value.Rows()
}

// copyPart copies peer r's part of a matrix with p's shape to its place in whole, or from there.
func (c *Cut) copyPart(d device.Device, part, whole *tensor.Tensor, p *nn.Param, r int, to bool) {
	first, end := rowsOf(p, r)
	wide := p.Len() / p.Shape[0]
	all := whole.Reshape(whole.Len()/wide, wide)
	start := 0 // row of the whole parameter where the piece begins
	for at, i := 0, 0; i < len(p.Regions[0].Rows); i++ {
		s := p.Regions[0].Rows[i]
		if first >= at && first < at+s.Len() {
			start = s.From + first - at
		}
		at += s.Len()
	}
	col, at := 0, 0
	if len(p.Shape) == 2 {
		col = p.Regions[r].Cols.From
	}
	for _, s := range p.Regions[r].Rows {
		from, until := max(first, at), min(end, at+s.Len())
		if from < until {
			near := device.Place{Row: from - first}
			far := device.Place{Row: s.From + from - at - start, Col: col}
			runs := device.Runs{Count: 1, Rows: until - from, Cols: width(p, r), To: far, From: near}
			if to {
				d.CopyRuns(&all, part, runs)
			} else {
				runs.To, runs.From = near, far
				d.CopyRuns(part, &all, runs)
			}
		}
		at += s.Len()
	}
}
