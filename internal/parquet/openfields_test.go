package parquet

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// Without a text column, rows have the same fields as with one, plus the text.
func TestOpenFieldsReadsAllColumns(t *testing.T) {
	for name, b := range golden(t) {
		with, _, err := rowsOf(b, 1<<20)
		if err != nil || !strings.HasPrefix(name, "fields") {
			continue
		}
		f, err := OpenFields(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		n := 0
		for g := range f.Groups {
			rows, err := f.Rows(g, 1<<20, quote)
			if err != nil {
				t.Fatal(err)
			}
			for range f.Groups[g].Rows {
				var want map[string]json.RawMessage
				if err := json.Unmarshal([]byte(with[n]), &want); err != nil {
					t.Fatal(err)
				}
				n++
				texts := 0
				_, err := rows.Next(func(field string, value []byte) {
					if field == "text" {
						texts++
					} else if string(value) != string(want[field]) {
						t.Errorf("%s, row %d: %s is %s, want %s", name, n, field, value, want[field])
					}
					delete(want, field)
				})
				if err != nil || texts != 1 || len(want) > 0 {
					t.Fatalf("%s, row %d: %d texts, without %v, %v", name, n, texts, want, err)
				}
			}
		}
		if n != len(with) {
			t.Errorf("%s: %d rows of %d", name, n, len(with))
		}
	}
}

func FuzzOpenFields(f *testing.F) {
	for _, b := range golden(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := OpenFields(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for g := range p.Groups {
			rows, err := p.Rows(g, 1<<16, quote)
			for i := int64(0); err == nil && i < min(p.Groups[g].Rows, 100); i++ {
				_, err = rows.Next(func(string, []byte) {})
			}
		}
	})
}
