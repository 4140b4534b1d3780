package gemm

import (
	"unsafe"

	"anneal/tensor"
)

// at returns the sink that begins at row i and column j.
func (s sink) at(i, j int) sink {
	s.p = unsafe.Add(s.p, (i*s.ld+j)*s.dtype.Size())
	return s
}

// A store moves a finished tile of sums [mr, colStep] to the result, converting and adding as the sink asks.
type store[E tensor.Number] func(dst sink, c *E, rows, cols int)

func put[E tensor.Number](dst sink, c *E, rows, cols int) {
	for i := range rows {
		row := unsafe.Slice(at(c, i*colStep), cols)
		p := unsafe.Add(dst.p, i*dst.ld*dst.dtype.Size())
		if dst.dtype != tensor.BF16 {
			out := unsafe.Slice((*E)(p), cols)
			for j, v := range row {
				if dst.add {
					v += out[j]
				}
				out[j] = v
			}
			continue
		}
		out := unsafe.Slice((*tensor.BFloat16)(p), cols)
		for j, v := range row {
			f := float32(v)
			if dst.add {
				f += out[j].Float32()
			}
			out[j] = tensor.BF16FromFloat32(f)
		}
	}
}
