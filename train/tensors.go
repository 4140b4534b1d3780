package train

import (
	"anneal/device"
	"anneal/model"
	"anneal/tensor"
)

// A Tensor is a live tensor of a model in training, under the name by which checkpoints know it.
type Tensor struct {
	Name   string
	Value  *tensor.Tensor
	Memory device.Memory // holds the value
	Kind   Kind
}

// Kind says what a tensor is of.
type Kind int

const (
	OfModel Kind = iota // what computing needs: weights, and the scales of FP8 with their histories
	OfOptimizer
	OfAverage // of the weights
)

// Tensors lists the trainer's tensors in a fixed order: the model's, the optimizer's, then the average of the weights.
func (t *Trainer) Tensors() []Tensor {
	list := ModelTensors(t.dev, t.model)
	for _, p := range t.updated {
		for i := range p.state {
			list = append(list, Tensor{p.Name + "." + p.state[i].Name, &p.state[i].Tensor, t.dev, OfOptimizer})
		}
	}
	for i, p := range t.model.Params()[:len(t.average.values)] {
		list = append(list, averageTensor(t.dev, p.Name, &t.average.values[i]))
	}
	return list
}

// ModelTensors lists what computing with a model needs. The weights are in the memory of dev.
func ModelTensors(dev device.Memory, m *model.Decoder) []Tensor {
	var list []Tensor
	for _, p := range m.Params() {
		list = append(list, Tensor{p.Name, &p.Value, dev, OfModel})
	}
	return append(list, scaleTensors(m)...)
}

// AverageTensors lists the weights of a model, in the memory of dev, as those of the average of a run.
func AverageTensors(dev device.Memory, m *model.Decoder) []Tensor {
	var list []Tensor
	for _, p := range m.Params() {
		list = append(list, averageTensor(dev, p.Name, &p.Value))
	}
	return list
}

func averageTensor(dev device.Memory, name string, x *tensor.Tensor) Tensor {
	return Tensor{name + ".ema", x, dev, OfAverage}
}
