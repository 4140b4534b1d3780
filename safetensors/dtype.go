package safetensors

import (
	"fmt"
	"math/bits"
)

// DType is an element type, by its name in the format.
type DType string

// The dtypes that this module reads and writes. Files may hold any dtype of the format.
const (
	U8   DType = "U8"
	F16  DType = "F16"
	BF16 DType = "BF16"
	F32  DType = "F32"
	F64  DType = "F64"
	I64  DType = "I64"
)

// dtypes lists every dtype of the format with its size in bits. Later entries come earlier in a canonical file, so
// that wide types keep their natural alignment.
var dtypes = []struct {
	name DType
	bits int64
}{
	{"BOOL", 8}, {"F4", 4}, {"F6_E2M3", 6}, {"F6_E3M2", 6}, {U8, 8}, {"I8", 8}, {"F8_E5M2", 8}, {"F8_E4M3", 8},
	{"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"I16", 16}, {"U16", 16}, {F16, 16}, {BF16, 16},
	{"I32", 32}, {"U32", 32}, {F32, 32}, {"C64", 64}, {F64, 64}, {I64, 64}, {"U64", 64},
}

// rank returns the position of d in dtypes, or -1 for an unknown dtype.
func (d DType) rank() int {
	for i := range dtypes {
		if dtypes[i].name == d {
			return i
		}
	}
	return -1
}

// ByteSize returns the number of bytes of a tensor of this dtype and shape. Unknown dtypes, negative dimensions,
// sizes beyond int64 and sub-byte types that do not fill whole bytes are errors.
func (d DType) ByteSize(shape []int) (int64, error) {
	r := d.rank()
	if r < 0 {
		return 0, fmt.Errorf("unknown dtype %q", string(d))
	}
	n := uint64(1)
	for _, dim := range shape {
		if dim < 0 {
			return 0, fmt.Errorf("negative dimension in shape %v", shape)
		}
		hi, lo := bits.Mul64(n, uint64(dim))
		if hi != 0 {
			return 0, fmt.Errorf("shape %v has too many elements", shape)
		}
		n = lo
	}
	hi, nbits := bits.Mul64(n, uint64(dtypes[r].bits))
	if hi != 0 || nbits>>63 != 0 {
		return 0, fmt.Errorf("shape %v of %s is too large", shape, d)
	}
	if nbits%8 != 0 {
		return 0, fmt.Errorf("shape %v of %s does not fill whole bytes", shape, d)
	}
	return int64(nbits / 8), nil
}
