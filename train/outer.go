package train

import (
	"fmt"

	"anneal/comm"
	"anneal/config"
	"anneal/device"
	"anneal/nn"
	"anneal/tensor"
)

// Groups of ranks that step separately (parallel.outer): DiLoCo (Douillard et al. 2023, arXiv 2311.08105, algorithm
// 1), and with lr 1 and momentum 0 local SGD (Stich 2018, arXiv 1805.09767). Group k of K computes micro-batches k,
// k+K, … of every step and updates its own weights by its own gradient. Every parallel.outer.every steps, and at the
// last step, the groups synchronise ("meet"). With s the weights that all groups started from, w_k those of group k,
// and m = 0 at first,
//
//	Δ = s − (w_0 + w_1 + …)/K,  m ← momentum·m + Δ,  s ← s − lr·(Δ + momentum·m)
//
// which is Nesterov momentum as in Sutskever et al. 2013, in the form of PyTorch's SGD. All groups continue from s,
// each with its own optimizer state, guard and loss scale. The weights are added in the order of the groups, so the
// bits depend on the number of groups but not on the number of ranks in a group.
//
// Memory: 8 bytes for each parameter that a rank updates (16 in the reference mode), and between processes room for
// the weights of the largest unit from every other group. Time: one transfer of the weights every parallel.outer.every
// steps. Not for fast links: the loss is higher for the same tokens. Sophia and group DRO need all micro-batches of a
// step, so they are refused.
type outer struct {
	config.Outer
	world   comm.Comm // of all groups
	params  []*nn.Param
	still   []bool          // which of params no group updates
	starts  []tensor.Tensor // s of each parameter, or piece of one, that this rank updates
	momenta []tensor.Tensor // m
	units   []outerUnit
	terms   []*tensor.Tensor

	row, rowFirst, rowNonFinite int // skipped steps in a row, in the group with the most
}

// outerUnit is a unit of the model whose weights groups exchange.
type outerUnit struct {
	weights    comm.Transfer
	first, end int // range of this rank's updated parameters
}

// layOuter allocates the outer state of the parameters that this rank updates, of a model given as units; nil without
// groups. For every rank, each other group has a rank with the same parameters.
func layOuter(o config.Outer, world comm.Comm, units [][]*nn.Param, updated []updated,
	arena func(string) *tensor.Arena) *outer {
	if !o.On() {
		return nil
	}
	x := &outer{Outer: o, world: world}
	for _, u := range updated {
		shape := u.Value.Shape()
		x.params, x.still = append(x.params, u.Param), append(x.still, u.still())
		x.starts = append(x.starts, arena(OuterState).New(u.Grad.DType(), shape...))
		x.momenta = append(x.momenta, arena(OuterState).New(u.Grad.DType(), shape...))
	}
	next, after := 0, 0
	for _, unit := range units {
		u := outerUnit{first: next}
		for after += len(unit); next < len(updated) && updated[next].index < after; {
			next++
		}
		u.end = next
		x.units = append(x.units, u)
	}
	x.connect(units, arena)
	return x
}

// connect prepares the transfers. All units arrive in the same memory, one after the other.
func (o *outer) connect(units [][]*nn.Param, arena func(string) *tensor.Arena) {
	for i := range o.units {
		u := &o.units[i]
		out, room := make([][]tensor.Tensor, o.world.Size()), [][]tensor.Tensor(nil)
		for k := range o.Groups {
			out[o.peer(k)] = o.values(u, func(p *nn.Param) tensor.Tensor { return p.Value })
		}
		if !o.world.InPlace() {
			room = make([][]tensor.Tensor, o.world.Size())
			o.layRoom(u, room, arena)
		}
		name := fmt.Sprintf("the weights of %s between groups", units[i][0].Name)
		u.weights = o.world.NewExchange(name, out, room)
	}
}

// layRoom allocates the memory that the weights of a unit arrive in.
func (o *outer) layRoom(u *outerUnit, room [][]tensor.Tensor, arena func(string) *tensor.Arena) {
	if u.first == u.end {
		return
	}
	a := arena(ReceivedWeights)
	begin := a.Mark()
	for k := range o.Groups {
		if r := o.peer(k); r != o.world.Rank() {
			room[r] = o.values(u, func(p *nn.Param) tensor.Tensor {
				return a.New(p.Value.DType(), p.Value.Shape()...)
			})
		}
	}
	a.Release(begin)
}

func (o *outer) values(u *outerUnit, of func(p *nn.Param) tensor.Tensor) (list []tensor.Tensor) {
	for _, p := range o.params[u.first:u.end] {
		list = append(list, of(p))
	}
	return list
}

// group returns the number of this rank's group.
func (o *outer) group() int { return o.world.Rank() % o.Groups }

// peer returns the rank of group k that has the same pieces as this one.
func (o *outer) peer(k int) int { return o.world.Rank() - o.group() + k }

// prefix returns the prefix of the names of this group's tensors.
func (o *outer) prefix() string {
	if o.group() == 0 {
		return ""
	}
	return fmt.Sprintf("replica.%d.", o.group())
}

// groups returns the number of groups; 1 if o is nil.
func (o *outer) groups() int {
	if o == nil {
		return 1
	}
	return o.Groups
}

// ofStep returns the number, within the step, of this group's micro-batch i.
func (o *outer) ofStep(i int) int {
	if o == nil {
		return i
	}
	return i*o.Groups + o.group()
}

// start starts from the present weights, without momentum. It does nothing if o is nil.
func (o *outer) start(dev device.Device) {
	if o == nil {
		return
	}
	for i, p := range o.params {
		dev.Copy(&o.starts[i], &p.Value)
		dev.Zero(&o.momenta[i])
	}
}

// meet takes the outer step. No rank may still be reading this rank's weights or gradients: the group's weights must
// be published, and every rank must have received its gradients, which the exchange of messages at the end of the step
// ensures.
func (o *outer) meet(dev device.Device) error {
	for i := range o.units {
		u := &o.units[i]
		u.weights.Start(o.world.Size())
		if err := u.weights.Wait(); err != nil {
			return err
		}
		for j, p := range o.params[u.first:u.end] {
			o.terms = o.terms[:0]
			for k := range o.Groups {
				o.terms = append(o.terms, &u.weights.From(o.peer(k))[j])
			}
			dev.Fold(&p.Grad, o.terms, false) // the gradient has been used
		}
		u.weights.Release()
		if err := u.weights.Sent(); err != nil {
			return err
		}
		for j := u.first; j < u.end; j++ {
			o.step(j, dev)
		}
	}
	return nil
}

// step takes the outer step of parameter i, whose gradient holds the sum of the weights of all groups. Frozen weights
// stay, because rounding would change their mean a little and momentum would add that up.
func (o *outer) step(i int, dev device.Device) {
	if o.still[i] {
		return
	}
	p, start, momentum := o.params[i], &o.starts[i], &o.momenta[i]
	dev.Combine(&p.Grad, start, &p.Grad, device.Combination{X: 1, Y: -1 / float64(o.Groups)}) // Δ
	dev.Combine(momentum, momentum, &p.Grad, device.Combination{X: o.Momentum, Y: 1})
	dev.Combine(start, start, &p.Grad, device.Combination{X: 1, Y: -o.LR})
	dev.Combine(start, start, momentum, device.Combination{X: 1, Y: -o.LR * o.Momentum})
	dev.Copy(&p.Value, start)
}
