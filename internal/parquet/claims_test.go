package parquet

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// Values of a column of fixed width have that width in every encoding.
func TestSharedPrefixesKeepTheWidthOfAColumn(t *testing.T) {
	one := func(value byte) []byte { return []byte{0x80, 1, 4, 1, 2 * value} } // DELTA_BINARY_PACKED of one value
	page := func(n int) []byte {
		return append(append(one(0), one(byte(n))...), bytes.Repeat([]byte{'x'}, n)...)
	}
	for n := range 9 {
		p := &pages{leaf: leaf{fixed: 4}}
		next, err := p.decoder(encodingDeltaBytes, page(n))
		if err != nil {
			t.Fatal(err)
		}
		if v, err := next(); (err == nil) != (n == 4) || err == nil && len(v) != n {
			t.Errorf("a value of %d bytes in a column of 4: %d bytes, %v", n, len(v), err)
		}
	}
}

// A footer without a schema, or with its row groups first, has no columns that could be looked at.
func TestFootersWithoutASchemaAreRefused(t *testing.T) {
	group := []byte{0x19, 0x0c, 0x16, 0, 0x16, 2, 0} // no columns, 0 bytes, one row
	schema := []byte{0x1c, 0x48, 4, 'r', 'o', 'o', 't', 0x15, 0, 0}
	for name, footer := range map[string][]byte{
		"nothing":   {0x15, 2, 0x26, 0, 0},
		"no schema": append(append([]byte{0x15, 2, 0x26, 2, 0x19, 0x1c}, group...), 0),
		"row groups first": append(append(append([]byte{0x15, 2, 0x26, 2, 0x19, 0x1c}, group...),
			append([]byte{0x09, 4}, schema...)...), 0),
	} {
		file := append([]byte("PAR1"), footer...)
		file = binary.LittleEndian.AppendUint32(file, uint32(len(footer)))
		file = append(file, "PAR1"...)
		if _, err := OpenFields(bytes.NewReader(file), int64(len(file))); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
