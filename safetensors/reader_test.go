package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// build makes a file of a raw header and n data bytes.
func build(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, n)...)
}

func parse(b []byte) (*File, error) { return NewFile(bytes.NewReader(b), int64(len(b))) }

func TestReaderAcceptsWhatTheFormatAllows(t *testing.T) {
	for name, c := range map[string]struct {
		header string
		data   int
		want   int // tensors
	}{
		"no tensors":    {`{}`, 0, 0},
		"padding":       {`{}      `, 0, 0},
		"metadata":      {`{"__metadata__":{"a":"b","":""}}`, 0, 0},
		"white space":   {"{ \"a\" :\n{\"shape\":[ 2 ,3 ] ,\"data_offsets\":[0,\t6],\"dtype\":\"U8\"}}", 6, 1},
		"scalar":        {`{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`, 4, 1},
		"empty tensors": {`{"a":{"dtype":"F32","shape":[0],"data_offsets":[4,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"c":{"dtype":"I8","shape":[9,0],"data_offsets":[0,0]}}`, 4, 3},
		"any order": {
			`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`,
			2, 2},
		"escaped name":         {`{"\u0061\n":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1, 1},
		"sub-byte whole bytes": {`{"a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}}`, 1, 1},
	} {
		f, err := parse(build(c.header, c.data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if len(f.Tensors()) != c.want {
			t.Errorf("%s: %d tensors, want %d", name, len(f.Tensors()), c.want)
		}
	}
}

func TestReaderRejects(t *testing.T) {
	one := func(dtype, shape, offsets string) string {
		return fmt.Sprintf(`{"a":{"dtype":%q,"shape":%s,"data_offsets":%s}}`, dtype, shape, offsets)
	}
	for name, c := range map[string]struct {
		file []byte
		want string // in the error
	}{
		"empty file":          {nil, "too short"},
		"seven bytes":         {make([]byte, 7), "too short"},
		"header past the end": {binary.LittleEndian.AppendUint64(nil, 1), "header of 1 bytes in a file of 8"},
		"header length 2^63":  {binary.LittleEndian.AppendUint64(nil, 1<<63), "header of"},
		"header length max":   {binary.LittleEndian.AppendUint64(nil, math.MaxUint64), "header of"},
		"zero header":         {build("", 0), "start with '{'"},
		"leading space":       {build(" {}", 0), "start with '{'"},
		"array":               {build("[]", 0), "start with '{'"},
		"not UTF-8":           {build("{\"\xff\":{}}", 0), "UTF-8"},
		"unterminated":        {build(`{"a"`, 0), "header ends"},
		"unterminated string": {build(`{"a`, 0), "unterminated"},
		"escape at the end":   {build(`{"a\`, 0), "unterminated"},
		"bad escape":          {build(`{"\x":{}}`, 0), "bad escape"},
		"control character":   {build("{\"a\nb\":{}}", 0), "control character"},
		"trailing comma":      {build(`{"__metadata__":{},}`, 0), "expected"},
		"trailing JSON":       {build(`{}{}`, 0), "after the end"},
		"trailing newline":    {build("{}\n", 0), "after the end"},
		"duplicate tensor": {build(
			`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`,
			2), "twice"},
		"duplicate by escape": {build(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\u0061":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0), "twice"},
		"duplicate metadata":  {build(`{"__metadata__":{},"__metadata__":{}}`, 0), "twice"},
		"duplicate in map":    {build(`{"__metadata__":{"a":"1","a":"2"}}`, 0), "twice"},
		"duplicate field": {build(`{"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1),
			"repeated"},
		"unknown field":      {build(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1}}`, 1), "unknown"},
		"missing field":      {build(`{"a":{"dtype":"U8","shape":[1]}}`, 1), "expected dtype"},
		"one offset":         {build(one("U8", "[1]", "[1]"), 1), "expected dtype"},
		"three offsets":      {build(one("U8", "[1]", "[0,1,1]"), 1), "more than 2"},
		"metadata number":    {build(`{"__metadata__":{"a":1}}`, 0), `expected '"'`},
		"metadata array":     {build(`{"__metadata__":[]}`, 0), "expected"},
		"tensor is a string": {build(`{"a":"b"}`, 0), "expected"},
		"unknown dtype":      {build(one("F31", "[1]", "[0,4]"), 4), "unknown dtype"},
		"negative dimension": {build(one("U8", "[-1]", "[0,1]"), 1), "unsigned"},
		"float dimension":    {build(one("U8", "[1.0]", "[0,1]"), 1), "expected"},
		"exponent":           {build(one("U8", "[1e0]", "[0,1]"), 1), "expected"},
		"leading zero":       {build(one("U8", "[01]", "[0,1]"), 1), "unsigned"},
		"huge dimension":     {build(one("U8", "[18446744073709551616]", "[0,1]"), 1), "too large"},
		"product overflow":   {build(one("U8", "[4294967296,4294967296]", "[0,0]"), 0), "too many"},
		"bit size overflow":  {build(one("F32", "[1152921504606846976]", "[0,0]"), 0), "too large"},
		"half a byte":        {build(one("F4", "[3]", "[0,2]"), 2), "whole bytes"},
		"rank":               {build(one("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1), "more than 8"},
		"size mismatch":      {build(one("F32", "[2]", "[0,4]"), 4), "needs 8"},
		"ascending":          {build(one("U8", "[0]", "[1,0]"), 1), "ascending"},
		"hole at the start":  {build(one("U8", "[1]", "[1,2]"), 2), "ends at 0"},
		"hole": {build(
			`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`,
			3), "ends at 1"},
		"overlap": {build(
			`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`,
			3), "ends at 2"},
		"same region": {build(
			`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`,
			2), "ends at 2"},
		"truncated data":    {build(one("U8", "[4]", "[0,4]"), 3), "truncated"},
		"offset past int64": {build(one("U8", "[9223372036854775807]", "[0,9223372036854775807]"), 3), "too large"},
		"trailing bytes":    {build(one("U8", "[4]", "[0,4]"), 5), "1 bytes after"},
		"long name": {
			build(`{"`+strings.Repeat("n", 513)+`":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, 1), "513 bytes"},
		"deep nesting":         {build("{\"a\":"+strings.Repeat("[", 100000), 0), "expected"},
		"metadata after close": {build(`{}"__metadata__":{}`, 0), "after the end"},
	} {
		_, err := parse(c.file)
		if err == nil {
			t.Errorf("%s: accepted", name)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %q does not say %q", name, err, c.want)
		}
	}
}

func TestReadAtStaysInsideTheTensor(t *testing.T) {
	file := build(
		`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}`, 0)
	f, err := parse(append(file, 1, 2, 3, 4))
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 1)
	if err := f.ReadAt("b", p, 1); err != nil || p[0] != 4 {
		t.Errorf("ReadAt(b, 1) = %d, %v; want 4", p[0], err)
	}
	for _, off := range []int64{-1, 2, 3, math.MaxInt64, math.MinInt64} {
		if err := f.ReadAt("a", p, off); err == nil {
			t.Errorf("ReadAt(a, %d) read %d", off, p[0])
		}
	}
	if err := f.ReadAt("c", p, 0); err == nil {
		t.Error("ReadAt of an unknown tensor succeeded")
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tensors []Tensor
		data := map[string][]byte{}
		dtypeGen := rapid.SampledFrom([]DType{U8, F16, BF16, F32, F64, I64, "BOOL", "F8_E4M3"})
		for _, name := range rapid.SliceOfDistinct(rapid.StringN(0, 20, 80), func(s string) string { return s }).Draw(t,
			"names") {
			if name == metadataKey || strings.ContainsRune(name, '�') {
				continue
			}
			dtype := dtypeGen.Draw(t, "dtype")
			shape := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 4).Draw(t, "shape")
			size, err := dtype.ByteSize(shape)
			if err != nil {
				t.Fatal(err)
			}
			data[name] = rapid.SliceOfN(rapid.Byte(), int(size), int(size)).Draw(t, "data")
			tensors = append(tensors, fromBytes(name, dtype, shape, data[name]))
		}
		var buf bytes.Buffer
		if err := Write(&buf, tensors, nil); err != nil {
			t.Fatal(err)
		}
		f, err := parse(buf.Bytes())
		if err != nil {
			t.Fatalf("cannot read what was written: %v\n%q", err, buf.Bytes())
		}
		if len(f.Tensors()) != len(tensors) {
			t.Fatalf("%d tensors, want %d", len(f.Tensors()), len(tensors))
		}
		if rest := f.Tensors(); len(rest) > 0 && rest[0].Offset%8 != 0 {
			t.Fatalf("data begins at %d, not a multiple of 8", rest[0].Offset)
		}
		for name, want := range data {
			got := make([]byte, len(want))
			if err := f.ReadAt(name, got, 0); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%q: %v, %v; want %v", name, got, err, want)
			}
		}
	})
}

// FuzzReader also holds the reader to an allocation ceiling: 16 bytes for each byte of the file, and 64 KiB.
func FuzzReader(f *testing.F) {
	f.Add(build(`{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}}`, 8))
	f.Add(build(`{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\u0062":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}}`, 1))
	f.Add(binary.LittleEndian.AppendUint64(nil, 99_999_999))
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		file, err := parse(b)
		runtime.ReadMemStats(&after)
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(16*len(b)+64<<10); got > limit {
			t.Errorf("%d bytes allocated for a file of %d, the ceiling is %d", got, len(b), limit)
		}
		if err != nil {
			return
		}
		covered := int64(0)
		for _, info := range file.Tensors() {
			if err := file.ReadAt(info.Name, make([]byte, info.Size), 0); err != nil {
				t.Errorf("%q: %v", info.Name, err)
			}
			covered += info.Size
		}
		if n := int64(binary.LittleEndian.Uint64(b)); covered != int64(len(b))-8-n {
			t.Errorf("tensors cover %d of %d data bytes", covered, int64(len(b))-8-n)
		}
	})
}
