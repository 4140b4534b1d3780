package gemm

import (
	"unsafe"

	"anneal/tensor"
)

// pairPacker packs words of two BF16 elements adjacent along k, the lower one first, in portable Go.
func pairPacker() packer[float32] {
	return packer[float32]{
		copyRows: func(dst *float32, ldd int, src source, rows, cols int) {
			for i := range rows {
				joinRow(words(at(dst, i*ldd), ceil(cols, 2)), 1, src.at(i, 0), cols)
			}
		},
		transpose: func(dst *float32, ldd int, src source, rows, cols int) {
			for i := range rows {
				joinRow(words(at(dst, i), (ceil(cols, 2)-1)*ldd+1), ldd, src.at(i, 0), cols)
			}
		},
		panels: func(dst *float32, width, stride int, src source, rows, cols int) {
			for p := 0; p < rows; p += 2 {
				for j := 0; j < cols; j += width {
					to := words(at(dst, j/width*stride+p/2*width), min(width, cols-j))
					joinRows(to, src.at(p, j), p+1 < rows)
				}
			}
		},
	}
}

func words(p *float32, n int) []uint32 { return unsafe.Slice((*uint32)(unsafe.Pointer(p)), n) }

// joinRow joins n consecutive elements in pairs, to every step-th word. An element without another is joined with 0.
func joinRow(dst []uint32, step int, src source, n int) {
	if src.dtype == tensor.BF16 {
		join(dst, step, unsafe.Slice((*tensor.BFloat16)(src.p), n), asTheyAre)
	} else {
		join(dst, step, unsafe.Slice((*float32)(src.p), n), tensor.BF16FromFloat32)
	}
}

func join[E any](dst []uint32, step int, src []E, round func(E) tensor.BFloat16) {
	i := 0
	for ; i+1 < len(src); i += 2 {
		dst[i/2*step] = uint32(round(src[i])) | uint32(round(src[i+1]))<<16
	}
	if i < len(src) {
		dst[i/2*step] = uint32(round(src[i]))
	}
}

// joinRows joins each element of a row with the one below it, if there are two rows, and with 0 otherwise.
func joinRows(dst []uint32, src source, two bool) {
	if src.dtype == tensor.BF16 {
		joinBelow[tensor.BFloat16](dst, src, two, asTheyAre)
	} else {
		joinBelow(dst, src, two, tensor.BF16FromFloat32)
	}
}

func joinBelow[E any](dst []uint32, src source, two bool, round func(E) tensor.BFloat16) {
	for i, x := range unsafe.Slice((*E)(src.p), len(dst)) {
		dst[i] = uint32(round(x))
	}
	if !two {
		return
	}
	for i, x := range unsafe.Slice((*E)(src.at(1, 0).p), len(dst)) {
		dst[i] |= uint32(round(x)) << 16
	}
}

func asTheyAre(x tensor.BFloat16) tensor.BFloat16 { return x }
