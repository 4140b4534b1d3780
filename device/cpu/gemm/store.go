package gemm

import (
	"unsafe"

	"anneal/tensor"
)

// at returns the address of row i and column j. Sinks are passed by pointer: a copy would go through memory and wait
// for the sums that are being stored.
func (s *sink) at(i, j int) unsafe.Pointer { return unsafe.Add(s.p, (i*s.ld+j)*s.dtype.Size()) }

// A store moves a finished tile of sums [mr, colStep] to address to of the result. It scales, adds and converts
// according to the sink.
type store[E tensor.Number] func(dst *sink, to unsafe.Pointer, c *E, rows, cols int)

func put[E tensor.Number](dst *sink, to unsafe.Pointer, c *E, rows, cols int) {
	for i := range rows {
		row := unsafe.Slice(at(c, i*colStep), cols)
		p := unsafe.Add(to, i*dst.ld*dst.dtype.Size())
		switch dst.dtype {
		case tensor.BF16:
			putNarrow(unsafe.Slice((*tensor.BFloat16)(p), cols), row, dst, tensor.BF16FromFloat32)
		case tensor.F16:
			putNarrow(unsafe.Slice((*tensor.Float16)(p), cols), row, dst, tensor.F16FromFloat32)
		default:
			out := unsafe.Slice((*E)(p), cols)
			for j, v := range row {
				v = E(v * E(dst.scale)) // rounded before the addition, on every machine
				if dst.add {
					v += out[j]
				}
				out[j] = v
			}
		}
	}
}

func putNarrow[S interface{ Float32() float32 }, E tensor.Number](out []S, row []E, dst *sink, round func(float32) S) {
	for j, v := range row {
		f := float32(float32(v) * float32(dst.scale))
		if dst.add {
			f += out[j].Float32()
		}
		out[j] = round(f)
	}
}
