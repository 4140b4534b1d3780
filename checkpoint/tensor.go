package checkpoint

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"anneal/internal/units"
)

// Tensor is one tensor of a run, or a part of one, with its bytes in live memory, which Save reads and Load fills. A
// process that has several parts of a tensor lists each.
type Tensor struct {
	Name    string
	DType   string // a safetensors dtype: "F32", "BF16", …
	Shape   []int  // of the whole tensor
	Region  Region // which part this is; the zero Region is the whole tensor
	Data    []byte // its bytes
	Remote  Remote // instead of Data, if the host cannot access the bytes
	Optim   bool   // optimizer state, kept in a separate file
	Average bool   // of an average of the weights, kept in a separate file

	// Volatile bytes may change as soon as Save or Write returns; the bytes of other tensors may change once Copied
	// has returned.
	Volatile bool
}

// Remote accesses a tensor's bytes in the memory of a device. If Read fails, dst is undefined.
type Remote interface {
	Read(dst []byte) error  // all of them
	Write(src []byte) error // all of them
}

// Bytes returns the size of the tensor or part; for a remote one, the size by its shape.
func (t *Tensor) Bytes() int64 {
	if t.Remote == nil {
		return int64(len(t.Data))
	}
	s, _ := t.Region.span(t.DType, t.Shape) // checkTensors has excluded an error
	return s.size()
}

// bytes returns the tensor's bytes: live ones, or a copy of a remote tensor in the buffer, which grows as needed.
func (t *Tensor) bytes(buffer *[]byte) ([]byte, error) {
	if t.Remote == nil {
		return t.Data, nil
	}
	n := int(t.Bytes())
	if cap(*buffer) < n {
		*buffer = make([]byte, n)
	}
	b := (*buffer)[:n]
	return b, t.Remote.Read(b)
}

// kind returns the kind of the tensor: the first part of the name of its file.
func (t *Tensor) kind() string {
	switch {
	case t.Optim:
		return optimKind
	case t.Average:
		return averageKind
	}
	return modelKind
}

// checkSome is checkTensors for a process that must have at least one tensor.
func checkSome(tensors []Tensor) error {
	if len(tensors) == 0 {
		return errors.New("checkpoint: no tensors")
	}
	return checkTensors(tensors)
}

// checkTensors returns an error unless all names differ, except those of parts of one tensor, and all data have the
// size of their dtype and shape.
func checkTensors(tensors []Tensor) error {
	seen := make(map[string]bool, len(tensors))
	for _, t := range tensors {
		s, err := t.Region.span(t.DType, t.Shape)
		name, shape := t.Region.header(t.Name, t.Shape)
		switch {
		case t.Name == "":
			return errors.New("checkpoint: a tensor has no name")
		case !utf8.ValidString(t.Name):
			return fmt.Errorf("checkpoint: the name of tensor %q is not UTF-8", t.Name)
		case err != nil:
			return fmt.Errorf("checkpoint: tensor %q: %w", t.Name, err)
		case s.size() != t.Bytes():
			return fmt.Errorf("checkpoint: tensor %q has %d bytes, but %s [%s] needs %d",
				name, len(t.Data), t.DType, units.List("%d", shape), s.size())
		case seen[name]:
			return fmt.Errorf("checkpoint: tensor %q is given twice", name)
		}
		seen[name] = true
	}
	return nil
}
