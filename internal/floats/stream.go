package floats

import "io"

// Values fills dst with the values of a tensor from element from on. Calls come in order and do not overlap.
type Values func(dst []float32, from int)

// Of returns the values of a slice, which the caller must not change before they are read.
func Of(values []float32) Values {
	return func(dst []float32, from int) { copy(dst, values[from:]) }
}

// chunk is how many values a Stream holds at a time; blocks of quantized formats divide it.
const chunk = 8192

// Stream is an io.Reader of n values as bytes of a format. It asks for values when they are read, a few thousand at a
// time, so that a tensor which must be computed never exists as a whole.
type Stream struct {
	n, at  int
	values Values
	encode func(b []byte, values []float32) []byte
	buf    []float32
	bytes  []byte
	rest   []byte // the part of bytes that is not read yet
}

// NewStream returns a stream of n values; encode appends the bytes of some of them, always a multiple of 32 except at
// the end.
func NewStream(n int, values Values, encode func(b []byte, values []float32) []byte) *Stream {
	return &Stream{n: n, values: values, encode: encode}
}

// Read implements io.Reader.
func (s *Stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(s.rest) == 0 {
		k := min(chunk, s.n-s.at)
		if k <= 0 {
			s.buf, s.bytes = nil, nil
			return 0, io.EOF
		}
		if s.buf == nil {
			s.buf = make([]float32, k)
		}
		s.values(s.buf[:k], s.at)
		s.at += k
		s.bytes = s.encode(s.bytes[:0], s.buf[:k])
		s.rest = s.bytes
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}
