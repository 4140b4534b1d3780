package train

import (
	"strings"

	"anneal/dataset"
	"anneal/model"
	"anneal/tensor"
	"anneal/train/checkpoint"
)

// state is what a checkpoint holds beside tensors. With the configuration and the data it determines the rest of the run.
type state struct {
	Progress progress      `json:"progress"`
	Data     dataset.State `json:"data"`
	Guard    guard         `json:"guard"`
	// Last results, so that a finished run can report them again.
	TrainLoss      number `json:"train_loss"`
	ValLoss        number `json:"val_loss"`
	ValBitsPerByte number `json:"val_bits_per_byte"`
	EvalStep       int    `json:"eval_step"` // of the two above
}

// checkpointTensors lists the live tensors of a run in a fixed order: weights, then both moments.
func (t *Trainer) checkpointTensors() []checkpoint.Tensor {
	list := weightTensors(t.model)
	for i, p := range t.model.Params() {
		for name, x := range t.states[i].Named() {
			s := checkpointTensor(p.Name+"."+name, x)
			s.Optim = true
			list = append(list, s)
		}
	}
	return list
}

// weightTensors lists the live weights of a model.
func weightTensors(m *model.Llama) []checkpoint.Tensor {
	var list []checkpoint.Tensor
	for _, p := range m.Params() {
		list = append(list, checkpointTensor(p.Name, &p.Value))
	}
	return list
}

func checkpointTensor(name string, x *tensor.Tensor) checkpoint.Tensor {
	return checkpoint.Tensor{Name: name, DType: strings.ToUpper(x.DType().String()), Shape: x.Shape(), Data: x.Raw()}
}
