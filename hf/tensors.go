package hf

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"anneal/safetensors"
)

// Spec is a tensor that a model must have.
type Spec struct {
	Name  string
	Shape []int
}

const head = "lm_head.weight"

// match checks that have is exactly the set of tensors of a model, and names every difference. It accepts buffers that
// old versions of transformers saved and that can be derived from the config.
func match(c Config, have []safetensors.Info) error {
	byName := make(map[string]safetensors.Info, len(have))
	for _, t := range have {
		byName[t.Name] = t
	}
	var problems []string
	for _, want := range c.Tensors() {
		got, ok := byName[want.Name]
		delete(byName, want.Name)
		switch {
		case !ok:
			problems = append(problems, fmt.Sprintf("tensor %q is missing", want.Name))
		case !slices.Equal(got.Shape, want.Shape):
			problems = append(problems, fmt.Sprintf("tensor %q has shape %v, the config asks for %v",
				want.Name, got.Shape, want.Shape))
		}
	}
	for name := range byName {
		switch {
		case c.derived(name):
		case name == head && c.tiedHead():
			problems = append(problems, `tensor "lm_head.weight" is present, but tie_word_embeddings is true`)
		default:
			problems = append(problems, fmt.Sprintf("tensor %q is not part of the model", name))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	slices.Sort(problems)
	if n := len(problems); n > 12 {
		problems = append(problems[:12], fmt.Sprintf("and %d more", n-12))
	}
	return errors.New(strings.Join(problems, "\n  "))
}

// named returns the tensors of a file under the names of Tensors: with gpt2Prefix, if none of them has it.
func named(c Config, have []safetensors.Info) (list []safetensors.Info, without string) {
	if _, ok := c.(*GPT2Config); !ok ||
		slices.ContainsFunc(have, func(t safetensors.Info) bool { return strings.HasPrefix(t.Name, gpt2Prefix) }) {
		return have, ""
	}
	list = slices.Clone(have)
	for i := range list {
		if list[i].Name != head {
			list[i].Name = gpt2Prefix + list[i].Name
		}
	}
	return list, gpt2Prefix
}

// withoutTiedHead leaves out a tied head that a file nevertheless contains, if it is a copy of the embedding.
func (m *Model) withoutTiedHead(have []safetensors.Info) ([]safetensors.Info, error) {
	i := slices.IndexFunc(have, func(t safetensors.Info) bool { return t.Name == head })
	if i < 0 || !m.Config.tiedHead() {
		return have, nil
	}
	same, err := m.same(head, m.stored(m.Config.embedding()))
	if err == nil && !same {
		err = errors.New(`tensor "lm_head.weight" is not the embedding, but tie_word_embeddings is true`)
	}
	return slices.Delete(slices.Clone(have), i, i+1), err
}

// same compares two tensors byte by byte.
func (m *Model) same(a, b string) (bool, error) {
	x, _ := m.weights.Lookup(a)
	y, ok := m.weights.Lookup(b)
	if !ok || x.DType != y.DType || !slices.Equal(x.Shape, y.Shape) {
		return false, nil
	}
	p, q := make([]byte, min(64<<10, x.Size)), make([]byte, min(64<<10, x.Size))
	for off := int64(0); off < x.Size; off += int64(len(p)) {
		n := min(int64(len(p)), x.Size-off)
		if err := errors.Join(m.weights.ReadAt(a, p[:n], off), m.weights.ReadAt(b, q[:n], off)); err != nil {
			return false, err
		}
		if !bytes.Equal(p[:n], q[:n]) {
			return false, nil
		}
	}
	return true, nil
}
