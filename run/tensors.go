package run

import (
	"strings"

	"anneal/checkpoint"
	"anneal/device"
	"anneal/model"
	"anneal/tensor"
	"anneal/train"
)

// checkpointTensors returns tensors as checkpoints take them.
func checkpointTensors(live []train.Tensor) []checkpoint.Tensor {
	list := make([]checkpoint.Tensor, len(live))
	for i, x := range live {
		list[i] = checkpoint.Tensor{
			Name: x.Name, DType: strings.ToUpper(x.Value.DType().String()), Shape: x.Shape,
			Optim: x.Kind == train.OfOptimizer, Average: x.Kind == train.OfAverage,
		}
		if n := x.To - x.From; n < elements(x.Shape) {
			list[i].Region = checkpoint.Region{From: int64(x.From), To: int64(x.To)}
		}
		if x.Value.Apart() {
			list[i].Remote = &remote{x.Memory, *x.Value}
		} else {
			list[i].Data = x.Value.Raw()
		}
	}
	return list
}

// weightTensors returns the weights of a model in host memory, and what else computing with them needs, as checkpoints
// take them.
func weightTensors(m *model.Decoder) []checkpoint.Tensor {
	return checkpointTensors(train.ModelTensors(device.Host{}, m))
}

// remote is a tensor in a device's own memory. It implements checkpoint.Remote.
type remote struct {
	dev device.Memory
	x   tensor.Tensor
}

// Read implements checkpoint.Remote.
func (r *remote) Read(dst []byte) error {
	r.dev.Read(dst, &r.x)
	return train.Wait(r.dev)
}

// Write implements checkpoint.Remote.
func (r *remote) Write(src []byte) error {
	r.dev.Write(&r.x, src)
	return train.Wait(r.dev)
}
