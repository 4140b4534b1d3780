package curate

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// Whatever bytes a document has, its line is JSON that other readers accept, with U+FFFD for each byte that is not UTF-8.
func TestLinesAreJSONForAnyBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOf(rapid.SampledFrom([]byte("a\"\\\n\t\r\x00\x1f\xc3\xa9\xff\xe2\x82"))).Draw(t, "text")
		line := appendString(nil, text)
		var got string
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%q for %q: %v", line, text, err)
		}
		if want := string([]rune(string(text))); got != want || string(line) != string(appendString(nil, []byte(want))) {
			t.Fatalf("%q is written as %q and read as %q, want %q", text, line, got, want)
		}
	})
}
