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

// A store moves a finished tile of sums [mr, colStep] to the result, scaling, adding and converting as the sink asks.
type store[E tensor.Number] func(dst sink, c *E, rows, cols int)

func put[E tensor.Number](dst sink, c *E, rows, cols int) {
	for i := range rows {
		row := unsafe.Slice(at(c, i*colStep), cols)
		p := unsafe.Add(dst.p, i*dst.ld*dst.dtype.Size())
		switch dst.dtype {
		case tensor.BF16:
			putNarrow(unsafe.Slice((*tensor.BFloat16)(p), cols), row, dst, tensor.BF16FromFloat32)
		case tensor.F16:
			putNarrow(unsafe.Slice((*tensor.Float16)(p), cols), row, dst, tensor.F16FromFloat32)
		default:
			out := unsafe.Slice((*E)(p), cols)
			for j, v := range row {
				v = E(v * E(dst.scale)) // rounded before it is added to, on every machine
				if dst.add {
					v += out[j]
				}
				out[j] = v
			}
		}
	}
}

func putNarrow[S interface{ Float32() float32 }, E tensor.Number](out []S, row []E, dst sink, round func(float32) S) {
	for j, v := range row {
		f := float32(float32(v) * float32(dst.scale))
		if dst.add {
			f += out[j].Float32()
		}
		out[j] = round(f)
	}
}
