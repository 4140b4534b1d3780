package corpus

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func BenchmarkObject(b *testing.B) {
	line, err := json.Marshal(map[string]any{
		"id": 12345, "url": "https://example.org/a/b",
		"text": strings.Repeat("Some text of a page,\nwith \"quotes\" and a line end.\n", 80),
	})
	if err != nil {
		b.Fatal(err)
	}
	for name, fields := range map[string]bool{"text": false, "text-and-fields": true} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			var o object
			for b.Loop() {
				o.parse(line, "text", fields)
			}
		})
	}
	b.Run("encoding-json", func(b *testing.B) {
		b.SetBytes(int64(len(line)))
		for b.Loop() {
			var v struct{ Text string }
			json.Unmarshal(line, &v)
		}
	})
}

// Text delivered per second, from Go source as JSON lines, plain and compressed, as WET, and as files.
func BenchmarkReading(b *testing.B) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Skip(err)
	}
	r, err := Open([]string{filepath.Join(strings.TrimSpace(string(out)), "src", "net"),
		filepath.Join(strings.TrimSpace(string(out)), "src", "go")}, Options{Extensions: []string{"go"}})
	if err != nil {
		b.Fatal(err)
	}
	var lines, records strings.Builder
	for d, err := range r.Documents() {
		if err != nil {
			b.Fatal(err)
		}
		lines.WriteString(string(AppendString([]byte(`{"id":12345,"url":"https://example.org/a/b","text":`), d.Text)) +
			"}\n")
		records.WriteString(wet("https://example.org/a/b", string(d.Text)))
	}
	for name, content := range map[string]string{
		"a.jsonl": lines.String(), "a.jsonl.zst": zst(lines.String()), "a.jsonl.gz": gz(lines.String()),
		"a.wet": records.String(), "a.wet.gz": gz(records.String()),
	} {
		dir := tree(b, map[string]string{name: content})
		b.Run(name, func(b *testing.B) {
			r, err := Open([]string{dir}, Options{})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				for _, err := range r.Documents() {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.SetBytes(r.Report().Bytes)
		})
	}
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
