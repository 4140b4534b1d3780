package hf

import (
	"fmt"
	"io"

	"anneal/safetensors"
)

// finite wraps the data of tensors so that reading a NaN or an infinity is an error.
func finite(tensors []safetensors.Tensor) []safetensors.Tensor {
	list := make([]safetensors.Tensor, len(tensors))
	for i, t := range tensors {
		r := &finiteReader{r: t.Data, width: 2, low: 0, mask: 0x7c}
		switch t.DType {
		case safetensors.F32:
			r.width, r.low, r.mask = 4, 0x80, 0x7f
		case safetensors.BF16:
			r.low, r.mask = 0x80, 0x7f
		}
		t.Data = r
		list[i] = t
	}
	return list
}

// finiteReader checks the exponent of every little-endian value that passes. The exponent is in the upper two bytes:
// the bits of mask in the last byte and the bits of low in the one before. An exponent of all ones is an infinity or a
// NaN.
type finiteReader struct {
	r         io.Reader
	width     int64 // 2 or 4
	low, mask byte
	at        int64 // bytes passed
	before    byte  // the last of them
}

func (f *finiteReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	for _, b := range p[:n] {
		if f.at++; f.at&(f.width-1) == 0 && b&f.mask == f.mask && f.before&f.low == f.low {
			return 0, fmt.Errorf("element %d is not a finite number: the model diverged, "+
				"and its weights cannot be used", f.at/f.width-1)
		}
		f.before = b
	}
	return n, err
}
