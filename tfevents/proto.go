package tfevents

import (
	"encoding/binary"
	"math"
)

// message is a protocol buffer that is being built. Each method appends a field with the given number.
type message []byte

const (
	varint  = 0
	fixed64 = 1
	lengthy = 2
	fixed32 = 5
)

func (m *message) key(field, wire int) {
	*m = binary.AppendUvarint(*m, uint64(field)<<3|uint64(wire))
}

func (m *message) int(field int, n int64) {
	m.key(field, varint)
	*m = binary.AppendUvarint(*m, uint64(n))
}

func (m *message) double(field int, f float64) {
	m.key(field, fixed64)
	*m = binary.LittleEndian.AppendUint64(*m, math.Float64bits(f))
}

func (m *message) float(field int, f float32) {
	m.key(field, fixed32)
	*m = binary.LittleEndian.AppendUint32(*m, math.Float32bits(f))
}

// bytes appends a field of text, bytes or another message.
func (m *message) bytes(field int, b []byte) {
	m.key(field, lengthy)
	*m = binary.AppendUvarint(*m, uint64(len(b)))
	*m = append(*m, b...)
}

func (m *message) string(field int, s string) { m.bytes(field, []byte(s)) }

// doubles appends a packed list.
func (m *message) doubles(field int, list []float64) {
	m.key(field, lengthy)
	*m = binary.AppendUvarint(*m, uint64(8*len(list)))
	for _, f := range list {
		*m = binary.LittleEndian.AppendUint64(*m, math.Float64bits(f))
	}
}
