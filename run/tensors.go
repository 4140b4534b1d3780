package run

import (
	"strings"

	"anneal/checkpoint"
	"anneal/device"
	"anneal/model"
	"anneal/tensor"
	"anneal/train"
)

// checkpointTensors converts tensors to package checkpoint's type.
func checkpointTensors(live []train.Tensor) []checkpoint.Tensor {
	var list []checkpoint.Tensor
	for _, x := range live {
		y := checkpoint.Tensor{
			Name: x.Name, DType: strings.ToUpper(x.Value.DType().String()), Shape: x.Shape,
			Optim: x.Kind == train.OfOptimizer, Average: x.Kind == train.OfAverage, Volatile: x.Volatile,
		}
		if x.Region.Len() == elements(x.Shape) {
			if n := x.To - x.From; n < elements(x.Shape) {
				y.Region = checkpoint.Region{From: int64(x.From), To: int64(x.To)}
			}
			list = append(list, withValue(y, &x, *x.Value))
			continue
		}
		list = append(list, boxes(y, &x)...)
	}
	return list
}

// boxes returns this rank's parts of a cut tensor: for each span of rows a part of a box.
func boxes(y checkpoint.Tensor, x *train.Tensor) (list []checkpoint.Tensor) {
	flat, first := x.Value.Reshape(x.Value.Len()), 0
	for _, rows := range x.Region.Rows {
		box := checkpoint.Box{Offset: []int{rows.From}, Shape: []int{rows.Len()}}
		n := rows.Len()
		if len(x.Shape) > 1 {
			n *= x.Region.Cols.Len()
			box.Offset = append(box.Offset, x.Region.Cols.From)
			box.Shape = append(box.Shape, x.Region.Cols.Len())
		}
		if from, to := max(x.From, first), min(x.To, first+n); from < to {
			y.Region = checkpoint.Region{Box: box, From: int64(from - first), To: int64(to - first)}
			list = append(list, withValue(y, x, flat.Slice(from-x.From, to-x.From)))
		}
		first += n
	}
	return list
}

// withValue returns y with elements of a live tensor.
func withValue(y checkpoint.Tensor, x *train.Tensor, value tensor.Tensor) checkpoint.Tensor {
	if value.Apart() {
		y.Remote = &remote{x.Memory, value}
	} else {
		y.Data = value.Raw()
	}
	return y
}

// weightTensors returns the weights of a model in host memory, and the other tensors that a forward pass needs, in
// package checkpoint's type.
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
