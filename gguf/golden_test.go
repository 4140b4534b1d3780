package gguf

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"anneal/internal/floats"
)

// goldenValues repeats the formula of testdata/make_golden.py.
func goldenValues() []float32 {
	x := make([]float32, 3*64)
	for i := range x {
		x[i] = float32(math.Ldexp(float64(i*7919%251-125), i*31%23-14))
		switch {
		case i == 96:
			x[i] = 127
		case i >= 64 && i < 96:
			x[i] = 0
		case i >= 96 && i < 128:
			x[i] = float32(i-112) / 2
		}
	}
	return x
}

// The reader finds what the format's own package wrote, and the writer writes the same bytes.
func TestFilesAreThoseOfTheFormatsOwnPackage(t *testing.T) {
	path := filepath.Join("testdata", "golden.gguf")
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	metadata := []KV{
		{"general.architecture", "golden"},
		{"k.u8", uint8(200)}, {"k.i8", int8(-100)}, {"k.u16", uint16(60000)}, {"k.i16", int16(-30000)},
		{"k.u32", uint32(4000000000)}, {"k.i32", int32(-2000000000)}, {"k.u64", uint64(1) << 63},
		{"k.i64", int64(-1 << 62)}, {"k.f32", float32(0.1)}, {"k.f64", 0.1}, {"k.bool", true}, {"k.string", "é漢🙂"},
		{"k.strings", []string{"", "a", "ĠĊ"}}, {"k.ints", []int32{-1, 0, 1}},
		{"k.floats", []float32{0.5, -0.25}}, {"k.bools", []bool{true, false}},
	}
	if got := f.Metadata(); !reflect.DeepEqual(got, metadata) {
		t.Errorf("metadata %v, want %v", got, metadata)
	}
	x := goldenValues()
	var tensors []Tensor
	add := func(name string, typ Type, shape []int, values []float32) {
		tensor, err := Float32(name, typ, shape, len(values), floats.Of(values))
		if err != nil {
			t.Fatal(err)
		}
		tensors = append(tensors, tensor)
	}
	for _, known := range []string{"f32", "f16", "bf16", "q8_0"} {
		for _, typ := range Types {
			if typ.Name == known {
				add("x."+known, typ.Type, []int{3, 64}, x)
			}
		}
	}
	add("one", F32, []int{5}, []float32{0, 1, 2, 3, 4})
	var out bytes.Buffer
	if err := Write(&out, metadata, tensors); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want) {
		at := 0
		for at < min(out.Len(), len(want)) && out.Bytes()[at] == want[at] {
			at++
		}
		t.Errorf("%d bytes, want %d; the first difference is at byte %d", out.Len(), len(want), at)
	}
	for name, worst := range map[string]float64{"x.f32": 0, "x.f16": 0x1p-11, "x.bf16": 0x1p-8, "x.q8_0": 1} {
		got := make([]float32, len(x))
		if err := f.ReadFloat32(name, got, 0); err != nil {
			t.Fatal(err)
		}
		for i := range x {
			limit := worst * math.Abs(float64(x[i]))
			if name == "x.q8_0" { // half a step, and the rounding of the scale
				top := 0.0
				for _, v := range x[i/32*32 : i/32*32+32] {
					top = max(top, math.Abs(float64(v)))
				}
				limit = top * (0.5/127 + 0x1p-11)
			}
			if d := math.Abs(float64(got[i] - x[i])); d > limit+0x1p-25 {
				t.Errorf("%s[%d] is %v, want %v within %v", name, i, got[i], x[i], limit)
			}
		}
	}
}
