package hf

import (
	"fmt"
	"path/filepath"
	"strings"

	"anneal/safetensors"
)

// Model is an open model directory with exactly the tensors that its config asks for, in whatever dtype the files
// have.
type Model struct {
	Config  Config
	weights *safetensors.Set
	without string // prefix that the names in the files lack
}

// Open reads and checks the config of a model directory and opens its weights.
func Open(dir string) (*Model, error) {
	c, err := ReadConfig(dir)
	if err != nil {
		return nil, err
	}
	w, err := safetensors.OpenDir(dir)
	if err != nil {
		return nil, fmt.Errorf("hf: %w", err)
	}
	m := &Model{Config: c, weights: w}
	have, without := named(c, w.Tensors())
	m.without = without
	if have, err = m.withoutTiedHead(have); err == nil {
		err = match(c, have)
	}
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("hf: the weights in %s do not fit its config.json:\n  %w", dir, err)
	}
	return m, nil
}

// Read fills dst with the elements of a tensor, which has a name and a shape of Config.Tensors. A NaN or an infinity
// is an error.
func (m *Model) Read(name string, dst []float32) error {
	if err := safetensors.ReadFloat32(m.weights, m.stored(name), dst); err != nil {
		return err
	}
	for i, x := range dst {
		if x-x != 0 {
			return fmt.Errorf("hf: element %d of tensor %q is %v: the model diverged or the file is damaged; "+
				"its weights cannot be used", i, name, x)
		}
	}
	return nil
}

// DType returns the number format of most elements of the weights.
func (m *Model) DType() safetensors.DType {
	elements := map[safetensors.DType]int64{}
	var most safetensors.DType
	for _, spec := range m.Config.Tensors() {
		info, _ := m.weights.Lookup(m.stored(spec.Name))
		n := int64(1)
		for _, d := range spec.Shape {
			n *= int64(d)
		}
		if elements[info.DType] += n; elements[info.DType] > elements[most] {
			most = info.DType
		}
	}
	return most
}

// stored returns the name of a tensor in the files.
func (m *Model) stored(name string) string {
	if name == head {
		return name
	}
	return strings.TrimPrefix(name, m.without)
}

// Close closes the weights.
func (m *Model) Close() error { return m.weights.Close() }

const maxConfig = 1 << 20 // bytes

// ReadConfig reads config.json in dir. For settings that this module cannot represent exactly (other architectures,
// unknown kinds of RoPE, quantised weights, unknown settings) it returns an error that names the field.
func ReadConfig(dir string) (Config, error) {
	path := filepath.Join(dir, "config.json")
	text, err := readText(path, maxConfig)
	if err != nil {
		return nil, fmt.Errorf("hf: %w", err)
	}
	c, err := parseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("hf: %s:\n%w", path, err)
	}
	return c, nil
}
