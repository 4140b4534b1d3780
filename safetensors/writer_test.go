package safetensors

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func fromBytes(name string, dtype DType, shape []int, data []byte) Tensor {
	return Tensor{Name: name, DType: dtype, Shape: shape, Data: bytes.NewReader(data)}
}

func TestWriteRejects(t *testing.T) {
	u8 := func(name string, n int) Tensor { return fromBytes(name, U8, []int{2}, make([]byte, n)) }
	for name, c := range map[string]struct {
		tensors []Tensor
		want    string
	}{
		"duplicate name":              {[]Tensor{u8("a", 2), u8("a", 2)}, "twice"},
		"duplicate name, other dtype": {[]Tensor{u8("a", 2), fromBytes("a", BF16, nil, make([]byte, 2))}, "twice"},
		"reserved name":               {[]Tensor{u8("__metadata__", 2)}, "invalid tensor name"},
		"name that is not UTF-8":      {[]Tensor{u8("a\xff", 2)}, "invalid tensor name"},
		"no data":                     {[]Tensor{{Name: "a", DType: U8, Shape: []int{2}}}, "no Data"},
		"short data":                  {[]Tensor{u8("a", 1)}, "wrote 1"},
		"long data":                   {[]Tensor{u8("a", 3)}, "wrote 3"},
		"negative dimension":          {[]Tensor{fromBytes("a", U8, []int{-1}, nil)}, "negative"},
		"unknown dtype":               {[]Tensor{fromBytes("a", "F7", nil, nil)}, "unknown dtype"},
		"floats into integers":        {[]Tensor{Float32("a", I64, []int{1}, []float32{1})}, "F32, BF16 or F16"},
		"sizes that overflow in sum": {[]Tensor{fromBytes("a", U8, []int{1 << 60}, nil),
			fromBytes("b", U8, []int{math.MaxInt64 >> 3}, nil), fromBytes("c", U8, []int{1 << 60}, nil), fromBytes("d",
				U8, []int{1 << 60}, nil), fromBytes("e", U8, []int{1 << 60}, nil),
			fromBytes("f", U8, []int{1 << 60}, nil), fromBytes("g", U8, []int{1 << 60}, nil),
			fromBytes("h", U8, []int{1 << 60}, nil)}, "too large"},
		"too many dimensions for reads": {[]Tensor{fromBytes("a", U8, make([]int, 9), nil)}, "9 dimensions"},
	} {
		err := Write(io.Discard, c.tensors, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
		}
	}
}

// JSON would replace such bytes, so that a file would say something else than was asked for.
func TestMetadataThatIsNotUTF8IsRefused(t *testing.T) {
	for _, m := range []map[string]string{{"a\xff": "b"}, {"a": "\xff"}} {
		if err := Write(io.Discard, nil, m); err == nil || !strings.Contains(err.Error(), "not UTF-8") {
			t.Errorf("%q: %v", m, err)
		}
	}
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("disk on fire") }

func TestFailedWriteLeavesTheOldFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "w.safetensors")
	if err := WriteFile(path, []Tensor{fromBytes("a", U8, []int{3}, []byte("old"))}, nil); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(path)
	err := WriteFile(path, []Tensor{{Name: "a", DType: U8, Shape: []int{3}, Data: failingReader{}}}, nil)
	if err == nil || !strings.Contains(err.Error(), "disk on fire") || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("error = %v, want one that names the tensor and the cause", err)
	}
	after, _ := os.ReadFile(path)
	entries, _ := os.ReadDir(dir)
	if !bytes.Equal(before, after) || len(entries) != 1 {
		t.Errorf("file changed: %v; directory holds %v", !bytes.Equal(before, after), entries)
	}
}
