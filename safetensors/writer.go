package safetensors

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"anneal/internal/fileio"
)

// Tensor is one tensor to write: little-endian, row-major bytes. Data must read as exactly these bytes, and is
// read once.
type Tensor struct {
	Name  string
	DType DType
	Shape []int
	Data  io.Reader
}

// Layout plans a file. It returns the bytes before the data, and the tensors in file order (widest dtype first, then
// by name) with Offset and Size set. It uses only Name, DType and Shape of the given infos. The metadata always
// contains a format, by default "pt", because the transformers library rejects files without one.
func Layout(tensors []Info, metadata map[string]string) (prefix []byte, order []Info, err error) {
	order = slices.Clone(tensors)
	slices.SortFunc(order, func(a, b Info) int {
		return cmp.Or(cmp.Compare(b.DType.rank(), a.DType.rank()), cmp.Compare(a.Name, b.Name))
	})
	at := int64(0)
	for i := range order {
		t := &order[i]
		switch {
		case t.Name == metadataKey || len(t.Name) > MaxName || !utf8.ValidString(t.Name):
			return nil, nil, fmt.Errorf("safetensors: invalid tensor name %.40q", t.Name)
		case i > 0 && order[i-1].Name == t.Name && order[i-1].DType == t.DType:
			return nil, nil, fmt.Errorf("safetensors: tensor %q is given twice", t.Name)
		case len(t.Shape) > MaxRank:
			return nil, nil, fmt.Errorf("safetensors: tensor %q has %d dimensions, the limit is %d",
				t.Name, len(t.Shape), MaxRank)
		}
		if t.Size, err = t.DType.ByteSize(t.Shape); err != nil {
			return nil, nil, fmt.Errorf("safetensors: tensor %q: %w", t.Name, err)
		}
		t.Offset = at
		if at += t.Size; at < 0 {
			return nil, nil, fmt.Errorf("safetensors: the tensors are too large in total")
		}
	}
	for k, v := range metadata {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return nil, nil, fmt.Errorf("safetensors: metadata %.40q: %.40q is not UTF-8", k, v)
		}
	}
	text := headerText(order, metadata)
	if len(text) > MaxHeader {
		return nil, nil, fmt.Errorf("safetensors: header of %d bytes exceeds the limit of %d", len(text), MaxHeader)
	}
	prefix = append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	// The strict reader checks the header, including equal names with different dtypes.
	h, err := parseHeader(text, int64(len(prefix)), int64(len(prefix))+at)
	if err != nil {
		return nil, nil, fmt.Errorf("safetensors: %w", err)
	}
	return prefix, h.tensors, nil
}

// headerText formats compact JSON, padded with spaces to a multiple of 8 bytes. Offsets are relative to the data.
func headerText(order []Info, metadata map[string]string) []byte {
	b := []byte(`{"` + metadataKey + `":{`)
	if _, ok := metadata["format"]; !ok {
		metadata = maps.Clone(metadata)
		if metadata == nil {
			metadata = map[string]string{}
		}
		metadata["format"] = "pt"
	}
	for i, k := range slices.Sorted(maps.Keys(metadata)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(appendString(b, k), ':'), appendString(nil, metadata[k])...)
	}
	b = append(b, '}')
	for _, t := range order {
		b = append(appendString(append(b, ','), t.Name), `:{"dtype":"`...)
		b = append(append(b, t.DType...), `","shape":[`...)
		for i, n := range t.Shape {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(n), 10)
		}
		b = strconv.AppendInt(append(b, `],"data_offsets":[`...), t.Offset, 10)
		b = strconv.AppendInt(append(b, ','), t.Offset+t.Size, 10)
		b = append(b, "]}"...)
	}
	b = append(b, '}')
	for len(b)%8 != 0 {
		b = append(b, ' ')
	}
	return b
}

// appendString appends s as a JSON string, with <, > and & unescaped, like the reference implementation.
func appendString(b []byte, s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // strings always encode
	}
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

// Write writes a whole file to w.
func Write(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	infos := make([]Info, len(tensors))
	data := make(map[string]io.Reader, len(tensors))
	for i, t := range tensors {
		if t.Data == nil {
			return fmt.Errorf("safetensors: tensor %q has no Data", t.Name)
		}
		infos[i] = Info{Name: t.Name, DType: t.DType, Shape: t.Shape}
		data[t.Name] = t.Data
	}
	prefix, order, err := Layout(infos, metadata)
	if err != nil {
		return err
	}
	if _, err := w.Write(prefix); err != nil {
		return err
	}
	for _, t := range order {
		n, err := io.Copy(w, data[t.Name])
		if err != nil {
			return fmt.Errorf("safetensors: tensor %q: %w", t.Name, err)
		}
		if n != t.Size {
			return fmt.Errorf("safetensors: tensor %q wrote %d bytes, but %s %v needs %d",
				t.Name, n, t.DType, t.Shape, t.Size)
		}
	}
	return nil
}

// WriteFile writes a file that gets the name path only when it is complete and on disk.
func WriteFile(path string, tensors []Tensor, metadata map[string]string) error {
	return writeAtomic(path, func(w io.Writer) error { return Write(w, tensors, metadata) })
}

// writeAtomic buffers the output of fill for a file that gets its name when complete.
func writeAtomic(path string, fill func(io.Writer) error) error {
	return fileio.Write(path, func(f io.Writer) error {
		w := bufio.NewWriterSize(f, 1<<20)
		if err := fill(w); err != nil {
			return err
		}
		return w.Flush()
	})
}
