package tensor

import "fmt"

// DType is the storage format of a tensor's elements.
type DType uint8

// The formats. Arithmetic uses F32 (or F64 in the reference mode); the narrow formats are for storage. The last three
// are not storage formats: operands of matrix products are rounded to them, and held in F32 (TF32) or BF16 (FP8).
const (
	Invalid DType = iota
	F32
	F64
	BF16
	F16
	I32
	U8
	Q8           // weights in 8 bits with scales, in blocks (blocked.go)
	BlockedF32   // F32 in blocks
	BlockedBF16  // BF16 in blocks
	BlockedPairs // BF16 in blocks of pairs
	TF32         // F32 with a 10-bit mantissa
	F8E4M3       // FP8 of forward operands
	F8E5M2       // FP8 of gradients
)

var dtypes = [...]struct {
	name string
	size int
}{Invalid: {"invalid", 0}, F32: {"f32", 4}, F64: {"f64", 8}, BF16: {"bf16", 2}, F16: {"f16", 2}, I32: {"i32", 4},
	U8: {"u8", 1}, Q8: {"q8", 1}, BlockedF32: {"blocked f32", 4}, BlockedBF16: {"blocked bf16", 2},
	BlockedPairs: {"blocked pairs of bf16", 2}, TF32: {"tf32", 4}, F8E4M3: {"e4m3", 1}, F8E5M2: {"e5m2", 1}}

// Size returns the bytes of one element; for Q8 those of its code.
func (d DType) Size() int { return dtypes[d].size }

// String returns the short name: f32, bf16, …
func (d DType) String() string {
	if int(d) >= len(dtypes) {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypes[d].name
}
