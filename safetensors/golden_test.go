package safetensors

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"slices"
	"testing"
)

// goldenTensors repeats the formula of testdata/make_golden.py.
func goldenTensors() []Tensor {
	const n = 24
	var f32, f32x2, f64, i64, u8, scalar, odd []byte
	var values []float32
	for i := range n {
		v := (float64(i) - 11.5) * 0.37
		values = append(values, float32(v))
		f32 = binary.LittleEndian.AppendUint32(f32, math.Float32bits(float32(v)))
		f32x2 = binary.LittleEndian.AppendUint32(f32x2, math.Float32bits(float32(v*2)))
		f64 = binary.LittleEndian.AppendUint64(f64, math.Float64bits(v))
		i64 = binary.LittleEndian.AppendUint64(i64, uint64((i-5)*1_000_000_007))
		u8 = append(u8, byte(i*11))
	}
	scalar = binary.LittleEndian.AppendUint32(nil, math.Float32bits(3.25))
	odd = binary.LittleEndian.AppendUint32(nil, 0x80000000)
	odd = binary.LittleEndian.AppendUint32(odd, 0x7f800000)
	return []Tensor{
		fromBytes("a.f32", F32, []int{24}, f32x2),
		fromBytes("b.f32", F32, []int{2, 3, 4}, f32),
		Float32("bf16", BF16, []int{4, 6}, values),
		fromBytes("empty", BF16, []int{0, 5}, nil),
		fromBytes("f64", F64, []int{24}, f64),
		fromBytes("i64", I64, []int{24}, i64),
		fromBytes("odd \"name\" <é>\\", F32, []int{2}, odd),
		fromBytes("scalar", F32, nil, scalar),
		fromBytes("u8", U8, []int{24}, u8),
	}
}

// The F16 tensor of the golden file is read, but there is no F16 encoder: its bytes are taken from the file.
func TestWriterMatchesPythonByteForByte(t *testing.T) {
	want, err := os.ReadFile("testdata/golden.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open("testdata/golden.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, _ := f.Lookup("f16")
	half := make([]byte, info.Size)
	if err := f.ReadAt("f16", half, 0); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := Write(&got, append(goldenTensors(), fromBytes("f16", F16, []int{6, 4}, half)), nil); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("ours, %d bytes:\n%q\npython's, %d bytes:\n%q", got.Len(), got.Bytes(), len(want), want)
	}
}

func TestReadsPythonFile(t *testing.T) {
	f, err := Open("testdata/golden.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := f.header.metadata["format"]; got != "pt" {
		t.Errorf("metadata format = %q, want pt", got)
	}
	tolerance := map[string]float64{"b.f32": 0, "f16": 1.0 / 2048, "bf16": 1.0 / 256, "f64": 0}
	for name, tol := range tolerance {
		got := make([]float32, 24)
		if err := ReadFloat32(f, name, got); err != nil {
			t.Fatal(err)
		}
		for i, g := range got {
			v := (float64(i) - 11.5) * 0.37
			if off := math.Abs(float64(g) - float64(float32(v))); off > tol*math.Abs(v) {
				t.Errorf("%s[%d] = %v, want %v within a relative %v", name, i, g, float32(v), tol)
			}
		}
	}
	for _, want := range goldenTensors() {
		got, ok := f.Lookup(want.Name)
		if !ok || got.DType != want.DType || !slices.Equal(got.Shape, want.Shape) {
			t.Errorf("Lookup(%q) = %+v, %v; want %s %v", want.Name, got, ok, want.DType, want.Shape)
		}
	}
	if err := ReadFloat32(f, "i64", make([]float32, 24)); err == nil {
		t.Error("ReadFloat32 accepted an I64 tensor")
	}
	if err := ReadFloat32(f, "f64", make([]float32, 23)); err == nil {
		t.Error("ReadFloat32 accepted a destination of the wrong size")
	}
}
