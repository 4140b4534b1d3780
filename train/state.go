package train

import (
	"encoding/json"
	"math"
	"strings"

	"anneal/dataset"
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
}

// UnmarshalJSON reads null back as NaN.
func (n *number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = number(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(n))
}

// checkpointTensors lists the live tensors of a run in a fixed order: weights, then both moments.
func (t *Trainer) checkpointTensors() []checkpoint.Tensor {
	var list []checkpoint.Tensor
	add := func(name string, x *tensor.Tensor, optim bool) {
		list = append(list, checkpoint.Tensor{
			Name: name, DType: strings.ToUpper(x.DType().String()), Shape: x.Shape(), Data: x.Raw(), Optim: optim,
		})
	}
	for _, p := range t.model.Params() {
		add(p.Name, &p.Value, false)
	}
	for i, p := range t.model.Params() {
		add(p.Name+".m", &t.states[i].M, true)
		add(p.Name+".v", &t.states[i].V, true)
	}
	return list
}
