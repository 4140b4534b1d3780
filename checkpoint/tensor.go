package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"

	"anneal/internal/units"
	"anneal/safetensors"
)

// Tensor is one tensor of a run, with its bytes in live memory, which Save reads and Load fills.
type Tensor struct {
	Name    string
	DType   string // a safetensors dtype: "F32", "BF16", …
	Shape   []int
	Data    []byte
	Remote  Remote // instead of Data, if the host cannot access the bytes
	Optim   bool   // optimizer state, kept in a separate file
	Average bool   // of an average of the weights, kept in a separate file
}

// Remote accesses a tensor's bytes in the memory of a device. If Read fails, dst is undefined.
type Remote interface {
	Read(dst []byte) error  // all of them
	Write(src []byte) error // all of them
}

// Bytes returns the size of the tensor; for a remote tensor, the size by its shape.
func (t *Tensor) Bytes() int64 {
	if t.Remote == nil {
		return int64(len(t.Data))
	}
	n, _ := safetensors.DType(t.DType).ByteSize(t.Shape) // checkTensors has excluded an error
	return n
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

// file returns the name of the file that holds the tensor.
func (t *Tensor) file() string {
	switch {
	case t.Optim:
		return optimName
	case t.Average:
		return averageName
	}
	return modelName
}

// checkTensors returns an error unless all names differ and all data have the size of their dtype and shape.
func checkTensors(tensors []Tensor) error {
	if len(tensors) == 0 {
		return errors.New("checkpoint: no tensors")
	}
	seen := make(map[string]bool, len(tensors))
	for _, t := range tensors {
		size, err := safetensors.DType(t.DType).ByteSize(t.Shape)
		switch {
		case t.Name == "":
			return errors.New("checkpoint: a tensor has no name")
		case err != nil:
			return fmt.Errorf("checkpoint: tensor %q: %w", t.Name, err)
		case size != t.Bytes():
			return fmt.Errorf("checkpoint: tensor %q has %d bytes, but %s [%s] needs %d", t.Name, len(t.Data), t.DType, units.List("%d", t.Shape), size)
		case seen[t.Name]:
			return fmt.Errorf("checkpoint: tensor %q is given twice", t.Name)
		}
		seen[t.Name] = true
	}
	return nil
}

// HashTensors returns SHA-256 hashes, in hex, of the weights and of all other state (empty if there is none). A hash
// covers name, dtype, shape and bytes of every tensor, in order of name. It depends neither on files nor on the given
// order. Hash returns the same for a checkpoint on disk. Reading can only fail for remote tensors.
func HashTensors(tensors []Tensor) (weights, optimizer string, err error) {
	var w, o digests
	var buffer []byte
	for _, t := range tensors {
		data, err := t.bytes(&buffer)
		if err != nil {
			return "", "", fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		h := newTensorHash(t.Name, t.DType, t.Shape)
		h.Write(data)
		if t.file() != modelName {
			o = append(o, digest{t.Name, h.Sum(nil)})
		} else {
			w = append(w, digest{t.Name, h.Sum(nil)})
		}
	}
	return w.sum(), o.sum(), nil
}

// digest is the SHA-256 of one tensor: of what newTensorHash writes, then its bytes.
type digest struct {
	name string
	sum  []byte
}

type digests []digest

// sum returns the SHA-256 of the digests in order of name.
func (d digests) sum() string {
	if len(d) == 0 {
		return ""
	}
	slices.SortFunc(d, func(a, b digest) int { return cmp.Compare(a.name, b.name) })
	h := sha256.New()
	for _, t := range d {
		h.Write(t.sum)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// newTensorHash returns a hash that has read name and dtype, each with its length, the rank and the dimensions.
func newTensorHash(name, dtype string, shape []int) hash.Hash {
	var b []byte
	for _, s := range []string{name, dtype} {
		b = append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(len(shape)))
	for _, n := range shape {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	h := sha256.New()
	h.Write(b)
	return h
}
