package floats

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
)

// Whatever the sizes of reads, a stream returns the values' bytes, and asks for the values in order and a few at a
// time.
func TestStreamIsTheBytesOfItsValues(t *testing.T) {
	values := make([]float32, 3*chunk+5)
	for i := range values {
		values[i] = float32(i)
	}
	next, most := 0, 0
	source := func(dst []float32, from int) {
		if from != next {
			t.Fatalf("asked for element %d, want %d", from, next)
		}
		next, most = from+len(dst), max(most, len(dst))
		copy(dst, values[from:])
	}
	s := NewStream(len(values), source, AppendF32)
	got, err := io.ReadAll(iotest.OneByteReader(s))
	if err != nil || !bytes.Equal(got, AppendF32(nil, values)) {
		t.Errorf("%d bytes, %v; want those of %d values", len(got), err, len(values))
	}
	if most > chunk {
		t.Errorf("%d values at a time, want at most %d", most, chunk)
	}
}
