package interop

import (
	"fmt"

	"anneal/device"
	"anneal/hf"
	"anneal/model"
	"anneal/precision"
	"anneal/safetensors"
	"anneal/tensor"
)

// Tensors returns every weight under its Hugging Face name.
func Tensors(m *model.Decoder, dtype safetensors.DType) []safetensors.Tensor {
	var list []safetensors.Tensor
	for _, v := range m.HFViews() {
		list = append(list, safetensors.Float32From(v.Name, dtype, v.Shape(), v.Tensor.Len(), v.Values()))
	}
	return list
}

// Load reads a model directory into weights of a policy's master type, in an arena of m, which it returns.
func Load(dir string, p precision.Policy, m device.Memory) (*model.Decoder, *tensor.Arena, error) {
	src, err := hf.Open(dir)
	if err != nil {
		return nil, nil, err
	}
	defer src.Close()
	c, err := FromHF(src.Config)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", dir, err)
	}
	params, err := m.NewArena("parameters", model.Measure(c, p, 1, c.Context, false).Params)
	if err != nil {
		return nil, nil, err
	}
	decoder := model.New(c, model.Memory{Device: m, Params: params, DType: p.Master})
	for _, v := range decoder.HFViews() {
		values := make([]float32, v.Tensor.Len())
		if err := src.Read(v.Name, values); err != nil {
			params.Close()
			return nil, nil, err
		}
		v.SetValues(values)
	}
	return decoder, params, nil
}

// StoredAs returns the dtype of the weights in a directory.
func StoredAs(dir string) (safetensors.DType, error) {
	m, err := hf.Open(dir)
	if err != nil {
		return "", err
	}
	defer m.Close()
	return m.DType(), nil
}
