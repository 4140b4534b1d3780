package train

import (
	"slices"

	"anneal/device"
	"anneal/model"
	"anneal/nn"
	"anneal/tensor"
)

// A Tensor is a live tensor of a model in training, or a piece of one, under the name by which checkpoints know it.
type Tensor struct {
	Name   string
	Value  *tensor.Tensor
	Memory device.Memory // holds the value
	Kind   Kind

	Volatile bool // every pass changes it; the others change in the update alone

	Shape    []int     // of the whole tensor
	Region   nn.Region // what of it a rank works with, by tensor parallelism
	From, To int       // of the elements of that, those that are here

	param int  // number of its parameter; −1 for none
	every int  // elements of the parameter that one element is about; 0 if it is about a part as a whole
	ofAll bool // the same in all groups that step alone
}

// wholeTensor returns a tensor of which all is here.
func wholeTensor(name string, x *tensor.Tensor, m device.Memory, kind Kind) Tensor {
	return Tensor{
		Name: name, Value: x, Memory: m, Kind: kind, Shape: x.Shape(), Region: nn.Whole(x.Shape()),
		To: x.Len(), param: -1,
	}
}

// Kind says what a tensor is of.
type Kind int

const (
	OfModel     Kind = iota // what computing needs: weights, and the scales of FP8 with their histories
	OfOptimizer             // moments, and what else its rule keeps
	OfAverage               // of the weights
)

// Tensors lists the tensors that the trainer holds, in a fixed order: the model's, the optimizer's, then the average of
// the weights. On a rank with a shard they are pieces. Of groups that step alone, those of group k > 0 have names that
// begin with "replica.k."; the state of the outer step is last, and the same in all groups.
func (t *Trainer) Tensors() (list []Tensor) {
	for i := range t.updated {
		list = append(list, t.weightTensors(i)...)
	}
	list = append(list, scaleTensors(t.model)...)
	for i := range t.updated {
		for k := range t.updated[i].state {
			e := &t.updated[i].state[k]
			if k == 0 && len(t.trained) > 0 {
				continue // in the model's place
			}
			x := t.piece(i, "."+e.Name, &e.Tensor, e.Every, OfOptimizer)
			if t.offload != nil {
				x.Memory = t.offload.file
			}
			list = append(list, x)
		}
	}
	for i := range t.average.values {
		list = append(list, t.piece(i, ".ema", &t.average.values[i], 1, OfAverage))
	}
	if t.outer == nil {
		return list
	}
	for i := range list {
		list[i].Name = t.outer.prefix() + list[i].Name
	}
	for i := range t.updated {
		start, momentum := &t.outer.starts[i], &t.outer.momenta[i]
		list = append(list, t.ofAll(i, ".outer_start", start), t.ofAll(i, ".outer_momentum", momentum))
	}
	return list
}

// ofAll returns a tensor of updated parameter i that is the same in all groups.
func (t *Trainer) ofAll(i int, suffix string, x *tensor.Tensor) Tensor {
	y := t.piece(i, suffix, x, 1, OfOptimizer)
	y.ofAll = true
	return y
}

// piece returns a tensor of updated parameter i, of which an element is about every elements of the parameter.
func (t *Trainer) piece(i int, suffix string, x *tensor.Tensor, every int, kind Kind) Tensor {
	p := &t.updated[i]
	whole := wholeTensor(p.Name+suffix, x, t.dev, kind)
	whole.param, whole.every = p.index, every
	if every == 0 {
		return whole
	}
	if every == 1 {
		whole.Shape, whole.Region = p.Shape, p.Region
	} else {
		whole.Shape = []int{(p.Len() + every - 1) / every}
		whole.Region = nn.Whole(whole.Shape)
	}
	whole.From = p.First / every
	whole.To = whole.From + x.Len()
	return whole
}

// Owned lists the tensors, or the pieces of tensors, that this rank writes to checkpoints. Of all ranks together they
// are every element once.
func (t *Trainer) Owned() (list []Tensor) {
	held := t.Tensors()
	if t.outer != nil && t.outer.group() > 0 {
		held = slices.DeleteFunc(held, func(x Tensor) bool { return x.ofAll })
	}
	if t.shard == nil {
		return held
	}
	for _, x := range held {
		switch {
		case x.param == 0 && t.shard.Replica():
		case x.param < 0 || x.every == 0: // about all of a parameter, or of a part that only this rank has
			if t.mesh.Cut == 0 && (x.param >= 0 && !t.whole() || t.mesh.Sums.Rank() == 0) {
				list = append(list, x)
			}
		default:
			list = append(list, t.ownedOf(x)...)
		}
	}
	return list
}

// ownedOf returns what of a tensor only this rank saves.
func (t *Trainer) ownedOf(x Tensor) (list []Tensor) {
	flat := x.Value.Reshape(x.Value.Len())
	for _, o := range t.shard.Mine {
		from := o.Piece.From / x.every
		to := (o.Piece.From + o.Counted + x.every - 1) / x.every
		if o.Piece.Param != x.param || o.Counted == 0 || from < x.From || to > x.To {
			continue
		}
		y := x
		y.From, y.To = from, to
		part := flat.Slice(from-x.From, to-x.From)
		y.Value = &part
		list = append(list, y)
	}
	return list
}

// Runs calls f for the elements that are here as runs that are contiguous in the whole tensor: n elements, of which the
// first is number local of Value and number global of the whole.
func (x *Tensor) Runs(f func(local, global, n int)) {
	x.Region.Runs(x.Shape, func(local, global, n int) {
		if from, to := max(local, x.From), min(local+n, x.To); from < to {
			f(from-x.From, global+from-local, to-from)
		}
	})
}

// ModelTensors lists what computing with a model needs. The weights are in the memory of dev.
func ModelTensors(dev device.Memory, m *model.Decoder) []Tensor {
	var list []Tensor
	for _, p := range m.Params() {
		list = append(list, wholeTensor(p.Name, &p.Value, dev, OfModel))
	}
	return append(list, scaleTensors(m)...)
}

// SecondMoment is AdamW's mean of squared gradients of a parameter, as checkpoints know it.
func SecondMoment(p *nn.Param, x *tensor.Tensor) Tensor {
	return wholeTensor(p.Name+".v", x, nil, OfOptimizer)
}

// AverageTensors lists the weights of a model, in the memory of dev, as those of the average of a run.
func AverageTensors(dev device.Memory, m *model.Decoder) []Tensor {
	var list []Tensor
	for _, p := range m.Params() {
		list = append(list, wholeTensor(p.Name+".ema", &p.Value, dev, OfAverage))
	}
	return list
}
