package train

import (
	"slices"

	"anneal/device"
	"anneal/model"
	"anneal/nn"
	"anneal/tensor"
)

// A Tensor is a live tensor of a model in training, or a piece of one, under its name in checkpoints.
type Tensor struct {
	Name   string
	Value  *tensor.Tensor
	Memory device.Memory // holds the value
	Kind   Kind

	Volatile bool // every pass changes it; other tensors change only in the update

	Shape    []int     // of the whole tensor
	Region   nn.Region // the region that this rank has with tensor parallelism
	From, To int       // elements of the region that are in Value

	param int  // number of its parameter; −1 for none
	every int  // elements of the parameter that one element describes; 0 if it describes a part as a whole
	ofAll bool // the same in all groups that step separately
}

// wholeTensor returns a tensor whose Value holds all of it.
func wholeTensor(name string, x *tensor.Tensor, m device.Memory, kind Kind) Tensor {
	return Tensor{
		Name: name, Value: x, Memory: m, Kind: kind, Shape: x.Shape(), Region: nn.Whole(x.Shape()),
		To: x.Len(), param: -1,
	}
}

// Kind says what a tensor belongs to.
type Kind int

const (
	OfModel     Kind = iota // weights, and the scales of FP8 with their histories: all that forward needs
	OfOptimizer             // moments, and other state of the optimizer
	OfAverage               // the average of the weights
)

// Tensors lists the tensors that the trainer holds, in a fixed order: the model's, the optimizer's, then the average
// of the weights. On a rank with a shard they are pieces. If groups step separately, the names of group k > 0 begin
// with "replica.k."; the state of the outer step is last, and is the same in all groups.
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

// piece returns a tensor of updated parameter i. Each of its elements describes every elements of the parameter.
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

// Owned lists the tensors, or the pieces of tensors, that this rank writes to checkpoints. All ranks together write
// every element once.
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
		case x.param < 0 || x.every == 0: // describes a whole parameter, or a whole part that only this rank has
			if t.mesh.Cut == 0 && (x.param >= 0 && !t.whole() || t.mesh.Sums.Rank() == 0) {
				list = append(list, x)
			}
		default:
			list = append(list, t.ownedOf(x)...)
		}
	}
	return list
}

// ownedOf returns the pieces of a tensor that only this rank saves.
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

// Runs calls f for each run of Value's elements that is contiguous in the whole tensor. A run has n elements; its
// first element has the index local in Value and global in the whole tensor.
func (x *Tensor) Runs(f func(local, global, n int)) {
	x.Region.Runs(x.Shape, func(local, global, n int) {
		if from, to := max(local, x.From), min(local+n, x.To); from < to {
			f(from-x.From, global+from-local, to-from)
		}
	})
}

// ModelTensors lists the tensors that a model's forward pass needs. The weights are in the memory of dev.
func ModelTensors(dev device.Memory, m *model.Decoder) []Tensor {
	var list []Tensor
	for _, p := range m.Params() {
		list = append(list, wholeTensor(p.Name, &p.Value, dev, OfModel))
	}
	return append(list, scaleTensors(m)...)
}

// SecondMoment returns AdamW's mean of squared gradients of a parameter, under its name in checkpoints.
func SecondMoment(p *nn.Param, x *tensor.Tensor) Tensor {
	return wholeTensor(p.Name+".v", x, nil, OfOptimizer)
}

// AverageTensors lists the weights of a model, in the memory of dev, under the names of a run's average.
func AverageTensors(dev device.Memory, m *model.Decoder) []Tensor {
	var list []Tensor
	for _, p := range m.Params() {
		list = append(list, wholeTensor(p.Name+".ema", &p.Value, dev, OfAverage))
	}
	return list
}
