package gguf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anneal/internal/floats"
)

// file builds a file from its parts: numbers are little-endian, strings have no length before them but in text.
func file(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			b = append(b, p...)
		case []byte:
			b = append(b, p...)
		default:
			b, _ = binary.Append(b, binary.LittleEndian, p)
		}
	}
	return b
}

func text(s string) []byte { return appendString(nil, s) }

func read(b []byte) (*File, error) { return NewFile(bytes.NewReader(b), int64(len(b))) }

func TestReaderRejects(t *testing.T) {
	start := func(tensors, keys uint64) []byte { return file("GGUF", uint32(3), tensors, keys) }
	tensor := func(name string, typ Type, offset uint64, dims ...uint64) []byte {
		return file(text(name), uint32(len(dims)), dims, uint32(typ), offset)
	}
	data := make([]byte, 256)
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":         {nil, "left"},
		"magic":         {file("GGML", uint32(3), uint64(0), uint64(0)), "start with GGUF"},
		"version 1":     {file("GGUF", uint32(1), uint64(0), uint64(0)), "version 1"},
		"big-endian":    {file("GGUF", uint32(3<<24), uint64(0), uint64(0)), "version"},
		"many tensors":  {start(1<<40, 0), "limits"},
		"negative keys": {start(0, math.MaxUint64), "limits"},
		"no entry":      {start(0, 1), "left"},
		"empty key":     {file(start(0, 1), text(""), uint32(7), byte(1)), "empty key"},
		"key twice": {file(start(0, 2), text("a"), uint32(7), byte(1), text("a"), uint32(7), byte(1)),
			"twice"},
		"long key":           {file(start(0, 1), uint64(1<<40)), "limit"},
		"unknown kind":       {file(start(0, 1), text("a"), uint32(13), byte(1)), "unknown type 13"},
		"array of arrays":    {file(start(0, 1), text("a"), uint32(9), uint32(9), uint64(0)), "unknown type 9"},
		"long string":        {file(start(0, 1), text("a"), uint32(8), uint64(1<<40)), "limit"},
		"string past end":    {file(start(0, 1), text("a"), uint32(8), uint64(1<<20)), "left"},
		"long array":         {file(start(0, 1), text("a"), uint32(9), uint32(10), uint64(1<<61)), "left"},
		"long strings":       {file(start(0, 1), text("a"), uint32(9), uint32(8), uint64(1<<30)), "left"},
		"alignment 3":        {file(start(0, 1), text("general.alignment"), uint32(4), uint32(3)), "power of two"},
		"alignment 0":        {file(start(0, 1), text("general.alignment"), uint32(4), uint32(0)), "power of two"},
		"alignment signed":   {file(start(0, 1), text("general.alignment"), uint32(5), int32(32)), "power of two"},
		"long name":          {file(start(1, 0), tensor(strings.Repeat("n", 64), F32, 0, 1), data), "limit is 63"},
		"name twice":         {file(start(2, 0), tensor("a", F32, 0, 1), tensor("a", F32, 32, 1), data), "twice"},
		"rank 5":             {file(start(1, 0), tensor("a", F32, 0, 1, 1, 1, 1, 1), data), "5 dimensions"},
		"negative dimension": {file(start(1, 0), tensor("a", F32, 0, math.MaxUint64), data), "dimension"},
		"product":            {file(start(1, 0), tensor("a", F32, 0, 1<<33, 1<<33), data), "too many"},
		"size":               {file(start(1, 0), tensor("a", F32, 0, 1<<62), data), "too large"},
		"unknown type":       {file(start(1, 0), tensor("a", 4, 0, 32), data), "unknown type 4"},
		"half a block":       {file(start(1, 0), tensor("a", Q8_0, 0, 16, 2), data), "blocks of 32"},
		"offset":             {file(start(1, 0), tensor("a", F32, 32, 1), data), "want 0"},
		"offset of second":   {file(start(2, 0), tensor("a", F32, 0, 1), tensor("b", F32, 4, 1), data), "want 32"},
		"huge offset":        {file(start(1, 0), tensor("a", F32, 1<<63, 1), data), "starts at"},
		"sum of sizes": {file(start(2, 0), tensor("a", 24, 0, 1<<62), tensor("b", 24, 1<<62, 1<<62), data),
			"too large"},
		"truncated": {file(start(1, 0), tensor("a", F32, 0, 1000), data), "truncated"},
		"no data":   {file(start(1, 0), tensor("a", F32, 0, 1)), "truncated"},
	} {
		_, err := read(c.file)
		if err == nil {
			t.Errorf("%s: accepted", name)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %q does not say %q", name, err, c.want)
		}
	}
}

func TestWriteRejects(t *testing.T) {
	one := func(name string, typ Type, n int) []Tensor {
		return []Tensor{{Name: name, Type: typ, Shape: []int{n}, Data: bytes.NewReader(make([]byte, 4))}}
	}
	for name, c := range map[string]struct {
		metadata []KV
		tensors  []Tensor
		want     string
	}{
		"twice":      {nil, append(one("a", F32, 1), one("a", F32, 1)...), "twice"},
		"long name":  {nil, one(strings.Repeat("n", 64), F32, 1), "limit"},
		"no data":    {nil, []Tensor{{Name: "a", Shape: []int{1}}}, "no Data"},
		"short data": {nil, one("a", F32, 2), "wrote 4 bytes"},
		"long data":  {nil, one("a", F16, 1), "wrote 4 bytes"},
		"block":      {nil, one("a", Q8_0, 2), "blocks of 32"},
		"int":        {[]KV{{"a", 1}}, nil, "type int"},
		"nil":        {[]KV{{"a", nil}}, nil, "type <nil>"},
		"key":        {[]KV{{"", true}}, nil, "empty key"},
	} {
		if err := Write(io.Discard, c.metadata, c.tensors); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
		}
	}
	if _, err := Float32("a", 2, []int{32}, 32, floats.Of(make([]float32, 32))); err == nil {
		t.Error("float32 values are stored as Q4_0")
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var metadata []KV
		keys := rapid.SliceOfDistinct(rapid.StringN(1, 20, 80), func(s string) string { return s }).Draw(t, "keys")
		for i, key := range keys {
			if key == "general.alignment" {
				continue
			}
			metadata = append(metadata, KV{key, []any{
				uint8(i), int32(-i), float32(i) / 3, i%2 == 0, key, []string{key, ""}, []float64{0.1, float64(i)},
				[]uint64{uint64(i)},
			}[i%8]})
		}
		var tensors []Tensor
		want := map[string][]float32{}
		names := rapid.SliceOfDistinct(rapid.StringN(0, 9, 36), func(s string) string { return s }).Draw(t, "names")
		for _, name := range names {
			shape := append(rapid.SliceOfN(rapid.IntRange(1, 4), 0, 3).Draw(t, "shape"), 32)
			n := 1
			for _, d := range shape {
				n *= d
			}
			values := rapid.SliceOfN(rapid.Float32Range(-1000, 1000), n, n).Draw(t, "values")
			typ := rapid.SampledFrom([]Type{F32, F16, BF16, Q8_0}).Draw(t, "type")
			tensor, err := Float32(name, typ, shape, n, floats.Of(values))
			if err != nil {
				t.Fatal(err)
			}
			tensors = append(tensors, tensor)
			want[name] = values
		}
		var out bytes.Buffer
		if err := Write(&out, metadata, tensors); err != nil {
			t.Fatal(err)
		}
		f, err := read(out.Bytes())
		if err != nil {
			t.Fatalf("cannot read what was written: %v", err)
		}
		if got := f.Metadata(); len(got) != len(metadata) || len(got) > 0 && !reflect.DeepEqual(got, metadata) {
			t.Fatalf("metadata %v, want %v", got, metadata)
		}
		for i, info := range f.Tensors() {
			if info.Name != tensors[i].Name || !reflect.DeepEqual(info.Shape, tensors[i].Shape) || info.Offset%32 != 0 {
				t.Fatalf("tensor %d is %+v, want %v %v", i, info, tensors[i].Name, tensors[i].Shape)
			}
			got := make([]float32, len(want[info.Name]))
			if err := f.ReadFloat32(info.Name, got, 0); err != nil {
				t.Fatal(err)
			}
			for j, x := range want[info.Name] {
				if d := math.Abs(float64(got[j] - x)); d > 1000*0x1p-7 || info.Type == F32 && d != 0 {
					t.Fatalf("%q[%d] in %v is %v, want %v", info.Name, j, info.Type, got[j], x)
				}
			}
		}
	})
}

// Version 2 has the layout of version 3, and an alignment of its own is kept.
func TestReaderReadsVersion2AndOtherAlignments(t *testing.T) {
	b := file("GGUF", uint32(2), uint64(2), uint64(1), text("general.alignment"), uint32(4), uint32(8),
		text("a"), uint32(1), uint64(1), uint32(F32), uint64(0), text("b"), uint32(0), uint32(F32), uint64(8))
	b = append(b, make([]byte, -len(b)&7)...)
	b = file(b, float32(3), uint32(0), float32(4))
	f, err := read(b)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 1)
	if err := f.ReadFloat32("b", got, 0); err != nil || got[0] != 4 {
		t.Errorf("b is %v, %v, want 4", got, err)
	}
	if err := f.ReadAt("a", make([]byte, 4), 1); err == nil {
		t.Error("a read past the end of a tensor succeeds")
	}
}

func TestFailedWriteLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := WriteFile(path, nil, []Tensor{{Name: "a", Type: F32, Shape: []int{1}, Data: strings.NewReader("abc")}})
	if got, _ := os.ReadFile(path); err == nil || string(got) != "old" {
		t.Errorf("error %v, and the file is %q", err, got)
	}
	bad := errors.New("bad")
	err = WriteFile(path, nil, []Tensor{{Name: "a", Type: F32, Shape: []int{1}, Data: strings.NewReader("abcd")}},
		func(f *File) error {
			if _, has := f.Lookup("a"); !has {
				t.Error("the check does not see the tensor")
			}
			return bad
		})
	if got, _ := os.ReadFile(path); err != bad || string(got) != "old" {
		t.Errorf("after a failed check: error %v, and the file is %q", err, got)
	}
}

// FuzzReader also holds the reader to an allocation ceiling: 32 bytes for each byte of the file, and 64 KiB.
func FuzzReader(f *testing.F) {
	if golden, err := os.ReadFile(filepath.Join("testdata", "golden.gguf")); err == nil {
		f.Add(golden)
	}
	f.Add(file("GGUF", uint32(3), uint64(0), uint64(1), text("a"), uint32(9), uint32(8), uint64(1<<40)))
	f.Add(file("GGUF", uint32(3), uint64(1), uint64(0), text("a"), uint32(1), uint64(32), uint32(Q8_0), uint64(0),
		make([]byte, 64)))
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		file, err := read(b)
		runtime.ReadMemStats(&after)
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(32*len(b)+64<<10); got > limit {
			t.Errorf("%d bytes allocated for a file of %d, the ceiling is %d", got, len(b), limit)
		}
		if err != nil {
			return
		}
		for _, info := range file.Tensors() {
			if err := file.ReadAt(info.Name, make([]byte, info.Size), 0); err != nil {
				t.Errorf("%q: %v", info.Name, err)
			}
		}
		var again []KV
		for _, kv := range file.Metadata() {
			if kv.Key != "general.alignment" {
				again = append(again, kv)
			}
		}
		if err := Write(io.Discard, again, nil); err != nil {
			t.Errorf("metadata that was read cannot be written: %v", err)
		}
	})
}

func ExampleOpen() {
	f, err := Open(filepath.Join("testdata", "golden.gguf"))
	if err != nil {
		panic(err)
	}
	defer f.Close()
	for _, t := range f.Tensors() {
		fmt.Println(t.Name, t.Type, t.Shape)
	}
	// Output:
	// x.f32 f32 [3 64]
	// x.f16 f16 [3 64]
	// x.bf16 bf16 [3 64]
	// x.q8_0 q8_0 [3 64]
	// one f32 [5]
}

// A position whose bytes overflow an int64 must not be read as the first.
func TestValuesBeyondATensorAreNotRead(t *testing.T) {
	var b bytes.Buffer
	x, err := Float32("a", F32, []int{2}, 2, floats.Of([]float32{1, 2}))
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(&b, nil, []Tensor{x}); err != nil {
		t.Fatal(err)
	}
	f, err := NewFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for _, from := range []int{-1, 2, 3, 1 << 62} {
		if err := f.ReadFloat32("a", make([]float32, 1), from); err == nil {
			t.Errorf("a value at %d", from)
		}
	}
	if err := f.ReadFloat32("a", nil, 2); err != nil {
		t.Errorf("no values at the end: %v", err)
	}
}
