package gguf

import (
	"fmt"
	"math/bits"
)

// Type is the number format of a tensor, by its number in files.
type Type uint32

// The types that this package encodes and decodes. Files may hold any type of the format.
const (
	F32  Type = 0
	F16  Type = 1
	Q8_0 Type = 8 // blocks of 32 values: a scale in F16 and 32 signed bytes
	BF16 Type = 30
)

// Types lists the types that values can be stored as, with their values of general.file_type.
var Types = []struct {
	Name     string
	Type     Type
	FileType uint32
}{{"f32", F32, 0}, {"f16", F16, 1}, {"bf16", BF16, 32}, {"q8_0", Q8_0, 7}}

// layout is the number of values in a block, and its number of bytes.
type layout struct{ values, bytes int64 }

// layouts has every type of the format: plain numbers, and the quantized types, whose rows consist of whole blocks.
var layouts = map[Type]layout{
	F32: {1, 4}, F16: {1, 2}, BF16: {1, 2}, Q8_0: {32, 34},
	24: {1, 1}, 25: {1, 2}, 26: {1, 4}, 27: {1, 8}, 28: {1, 8}, // I8, I16, I32, I64, F64
	2: {32, 18}, 3: {32, 20}, 6: {32, 22}, 7: {32, 24}, 9: {32, 36}, // Q4_0, Q4_1, Q5_0, Q5_1, Q8_1
	10: {256, 84}, 11: {256, 110}, 12: {256, 144}, 13: {256, 176}, 14: {256, 210}, 15: {256, 292}, // Q2_K to Q8_K
	16: {256, 66}, 17: {256, 74}, 18: {256, 98}, 19: {256, 50}, // IQ2_XXS, IQ2_XS, IQ3_XXS, IQ1_S
	20: {32, 18}, 21: {256, 110}, 22: {256, 82}, 23: {256, 136}, 29: {256, 56}, // IQ4_NL, IQ3_S, IQ2_S, IQ4_XS, IQ1_M
	34: {256, 54}, 35: {256, 66}, 39: {32, 17}, // TQ1_0, TQ2_0, MXFP4
}

// String returns the name of a type that values can be stored as, else its number.
func (t Type) String() string {
	for _, known := range Types {
		if known.Type == t {
			return known.Name
		}
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// Fits reports whether rows of n values consist of whole blocks of the type.
func (t Type) Fits(n int) bool {
	l, known := layouts[t]
	return known && int64(n)%l.values == 0
}

// ByteSize returns the number of bytes of a tensor of this type. shape has the length of rows last, as in [out, in].
// Unknown types, dimensions below 0, sizes beyond int64 and rows that are not whole blocks are errors.
func (t Type) ByteSize(shape []int) (int64, error) {
	l, known := layouts[t]
	if !known {
		return 0, fmt.Errorf("unknown %v", t)
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
	row := int64(1)
	if len(shape) > 0 {
		row = int64(shape[len(shape)-1])
	}
	if row%l.values != 0 {
		return 0, fmt.Errorf("rows of %d values do not consist of blocks of %d, as %v needs", row, l.values, t)
	}
	hi, size := bits.Mul64(n/uint64(l.values), uint64(l.bytes))
	if hi != 0 || size>>63 != 0 {
		return 0, fmt.Errorf("shape %v of %v is too large", shape, t)
	}
	return int64(size), nil
}
