package gguf

import (
	"encoding/binary"
	"fmt"
	"math"

	"anneal/internal/floats"
)

// Float32 returns a tensor of n float32 values of the given shape, which are rounded to the type when they are
// written, a few thousand at a time. F32 is exact, F16 and BF16 round to nearest even, and Q8_0 rounds as the format's
// reference does.
func Float32(name string, t Type, shape []int, n int, values floats.Values) (Tensor, error) {
	encode := map[Type]func([]byte, []float32) []byte{
		F32: floats.AppendF32, F16: floats.AppendF16, BF16: floats.AppendBF16, Q8_0: appendQ8,
	}[t]
	if encode == nil {
		return Tensor{}, fmt.Errorf("gguf: tensor %q: float32 values cannot be stored as %v", name, t)
	}
	return Tensor{Name: name, Type: t, Shape: shape, Data: floats.NewStream(n, values, encode)}, nil
}

// appendQ8 appends blocks of Q8_0. Each holds a scale in F16 and 32 codes, the bytes of the format's reference.
func appendQ8(b []byte, values []float32) []byte {
	var codes [floats.Q8Block]int8
	for ; len(values) >= len(codes); values = values[len(codes):] {
		scale := floats.ToQ8(&codes, (*[floats.Q8Block]float32)(values))
		b = binary.LittleEndian.AppendUint16(b, scale)
		for _, code := range codes {
			b = append(b, byte(code))
		}
	}
	return b
}

// ReadFloat32 fills dst with the values of a tensor from element from on, which begins a block. The tensor is stored
// as F32, F16, BF16 or Q8_0.
func (f *File) ReadFloat32(name string, dst []float32, from int) error {
	t, ok := f.Lookup(name)
	if !ok {
		return fmt.Errorf("gguf: no tensor %q", name)
	}
	decode := map[Type]func(dst []float32, b []byte){F32: fromF32, F16: fromF16, BF16: fromBF16, Q8_0: fromQ8}[t.Type]
	if decode == nil {
		return fmt.Errorf("gguf: tensor %q has %v, want f32, f16, bf16 or q8_0", name, t.Type)
	}
	l := layouts[t.Type]
	if from < 0 || int64(from) > t.Size/l.bytes*l.values {
		return fmt.Errorf("gguf: tensor %q has %d values: there is none at %d", name, t.Size/l.bytes*l.values, from)
	}
	if int64(len(dst))%l.values != 0 || int64(from)%l.values != 0 {
		return fmt.Errorf("gguf: tensor %q: %d values from %d on are not whole blocks of %d", name, len(dst), from,
			l.values)
	}
	const at = 4096 // values; a multiple of every block
	buf := make([]byte, min(int64(len(dst)), at)/l.values*l.bytes)
	for off := int64(from) / l.values * l.bytes; len(dst) > 0; {
		k := min(len(dst), at)
		b := buf[:int64(k)/l.values*l.bytes]
		if err := f.ReadAt(name, b, off); err != nil {
			return err
		}
		decode(dst[:k], b)
		dst, off = dst[k:], off+int64(len(b))
	}
	return nil
}

func fromF32(dst []float32, b []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}

func fromF16(dst []float32, b []byte) {
	for i := range dst {
		dst[i] = floats.FromF16(binary.LittleEndian.Uint16(b[2*i:]))
	}
}

func fromBF16(dst []float32, b []byte) {
	for i := range dst {
		dst[i] = floats.FromBF16(binary.LittleEndian.Uint16(b[2*i:]))
	}
}

func fromQ8(dst []float32, b []byte) {
	const n = floats.Q8Block
	for ; len(dst) > 0; dst, b = dst[n:], b[2+n:] {
		d := floats.FromF16(binary.LittleEndian.Uint16(b))
		for i := range n {
			dst[i] = d * float32(int8(b[2+i]))
		}
	}
}
