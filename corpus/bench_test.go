package corpus

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func BenchmarkTextField(b *testing.B) {
	line, err := json.Marshal(map[string]any{"id": 12345, "url": "https://example.org/a/b", "text": strings.Repeat("Some text of a page,\nwith \"quotes\" and a line end.\n", 80)})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("textField", func(b *testing.B) {
		b.SetBytes(int64(len(line)))
		for b.Loop() {
			textField(line, "text")
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(line)))
		for b.Loop() {
			var v struct{ Text string }
			json.Unmarshal(line, &v)
		}
	})
}

func BenchmarkDocuments(b *testing.B) {
	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("%d/%d.go", i%10, i)] = strings.Repeat("func f(x int) int { return x }\n", 300)
	}
	r, err := Open([]string{tree(b, files)}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(r.Size())
	for b.Loop() {
		for _, err := range r.Documents() {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
