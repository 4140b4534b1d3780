package tensor

import "fmt"

// DType is the storage format of a tensor's elements.
type DType uint8

// The storage formats. Arithmetic is done in F32 (or F64 in the reference mode); the narrow formats are for storage.
const (
	Invalid DType = iota
	F32
	F64
	BF16
	F16
	I32
	U8
)

var dtypes = [...]struct {
	name string
	size int
}{Invalid: {"invalid", 0}, F32: {"f32", 4}, F64: {"f64", 8}, BF16: {"bf16", 2}, F16: {"f16", 2}, I32: {"i32", 4}, U8: {"u8", 1}}

// Size returns the bytes of one element.
func (d DType) Size() int { return dtypes[d].size }

// String returns the short name: f32, bf16, …
func (d DType) String() string {
	if int(d) >= len(dtypes) {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypes[d].name
}
